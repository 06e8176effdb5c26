/**
 * Tests that a bounded client has no more concurrent requests than allowed, and that watches do not
 * count.
 */
import { expect, test } from 'vitest';
import type { KubeClient } from '../client.ts';
import { type KubeObject, nodes } from '../resources.ts';
import { boundedClient } from './bounded-client.ts';

/** Returns a client whose gets wait. A get is answered when the test calls `answer` with the name of its object. */
function slowClient(): { client: KubeClient; asked: string[]; answer: (name: string) => void } {
  const asked: string[] = [];
  const open = new Map<string, (object: KubeObject) => void>();
  const slow = {
    get: async (_resource: unknown, name: string) => {
      asked.push(name);
      return await new Promise<KubeObject>((resolve) => open.set(name, resolve));
    },
    watch: () => {
      asked.push('watch');
      return (async function* () {})();
    },
  };
  return {
    client: slow as unknown as KubeClient,
    asked,
    answer: (name) => open.get(name)?.({ metadata: { name } }),
  };
}

test('a request waits until another has its answer; a watch does not', async () => {
  const { client, asked, answer } = slowClient();
  const bounded = boundedClient(client, 2);
  const answers = ['a', 'b', 'c', 'd'].map(
    async (name) => (await bounded.get(nodes, name)).metadata.name,
  );
  bounded.watch(nodes);
  await Promise.resolve();
  expect(asked).toEqual(['a', 'b', 'watch']);
  answer('b');
  await answers[1];
  expect(asked).toEqual(['a', 'b', 'watch', 'c']);
  for (const name of ['a', 'c']) answer(name);
  await Promise.all([answers[0], answers[2]]);
  answer('d');
  expect(await Promise.all(answers)).toEqual(['a', 'b', 'c', 'd']);
});
