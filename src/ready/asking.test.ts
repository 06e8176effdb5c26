/** Tests how the checks of `refit ready` ask the API server. */
import { expect, test } from 'vitest';
import type { KubeClient } from '../kube/client.ts';
import { answer, askingOf } from './asking.ts';

/** Returns what asks an API server that allows everything, and the users that were asked about. */
function allowing() {
  const users: string[] = [];
  const client: Pick<KubeClient, 'create'> = {
    async create(_resource, object) {
      users.push((object as unknown as { spec: { user: string } }).spec.user);
      return await Promise.resolve({ ...object, status: { allowed: true } });
    },
  };
  return { users, asking: askingOf(client as KubeClient, new AbortController().signal) };
}

test('a question about a right goes to the API server only once for each user', async () => {
  const { users, asking } = allowing();
  const evict = { verb: 'create', group: '', resource: 'pods', subresource: 'eviction' };
  const asked = ['one', 'other', 'one'].map(async (user) => await asking.allows(user, evict));
  expect(await Promise.all(asked)).toEqual([answer(true), answer(true), answer(true)]);
  expect(users).toEqual(['one', 'other']);
});

test('different questions about the rights of one user all go to the API server', async () => {
  const { users, asking } = allowing();
  for (const verb of ['get', 'list'])
    await asking.allows('one', { verb, group: '', resource: 'pods' });
  await asking.allows('one', { verb: 'get', path: '/readyz' });
  expect(users).toHaveLength(3);
});
