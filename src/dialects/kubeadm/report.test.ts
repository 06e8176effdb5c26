/** Proves that invalid reports are ignored. */
import { expect, test } from 'vitest';
import { reportOn } from './signal.ts';

test.each(['', '{', '[]', '{"attempt":1}'])('a report that cannot be read counts as none: %j', (text) => {
  expect(reportOn({ metadata: { name: 'w1', annotations: { 'upgrade.refit.dev/kubeadm': text } } })).toBeUndefined();
});
