/** Proves how the request of a plan is read: by this release and from an earlier one. */
import { expect, test } from 'vitest';
import { requestOf } from './plan-object.ts';

test.each([undefined, '', '{', '{}', '{"version":1}'])(
  'a plan with a request that nobody can read has none: %j',
  (text) => {
    expect(
      requestOf({ metadata: { name: 'refit-kubeadm' }, ...(text === undefined ? {} : { data: { request: text } }) }),
    ).toBeUndefined();
  },
);

test('one from before there were renewals of certificates has none', () => {
  const earlier = { version: 'v1.36.3', concurrent: 1, leader: ['cp1'], followers: [], kubelets: [], workers: [] };
  const plan = { metadata: { name: 'refit-kubeadm' }, data: { request: JSON.stringify(earlier) } };
  expect(requestOf(plan)).toEqual({ ...earlier, certificates: [] });
});
