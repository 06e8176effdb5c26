/**
 * Runs each demonstration with the command of `npm start -- --dialect`. Tests that the demonstration ends without
 * intervention and prints its result.
 */
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { DEMONSTRATIONS } from '../../sandbox/start/registry.ts';
import { run } from '../../tools/controlplane/run.ts';

const START = join(import.meta.dirname, '..', '..', 'sandbox', 'start.ts');

// The tests of a kept cluster run the first demonstration on a real control plane.
test.each(DEMONSTRATIONS.slice(1).map(({ dialect }) => dialect))('%s', async (dialect) => {
  const { ok, stdout, stderr } = await run(process.execPath, [START, '--dialect', dialect]);
  expect(ok, stdout + stderr).toBe(true);
  expect(stdout).toMatch(/Total time: (?:\d+ min(?: \d+ s)?|\d+ s)\.\n$/);
});

function isDone({ state }: { readonly state: string }): number {
  return state === 'done' ? 1 : 0;
}

test('the demonstration of K3s upgrades one server at a time, and no agent before all servers', async () => {
  const { stdout } = await run(process.execPath, [START, '--dialect', 'cattle']);
  const lines = stdout.split('\n');
  const changes = lines
    .flatMap((line) => {
      const [, at = '', node = '', state = ''] =
        /^\s*(\S+) .* node (server\d) (Running|done)$/.exec(line) ?? [];
      return node === '' ? [] : [{ at, node, state }];
    })
    // One picture of the cluster may show the end of a server and the start of the next one, in the order of the names.
    .toSorted((a, b) => (a.at === b.at ? isDone(b) - isDone(a) : 0));
  let running = new Set<string>();
  for (const { node, state } of changes) {
    running =
      state === 'done' ? running.difference(new Set([node])) : running.union(new Set([node]));
    expect(running.size).toBeLessThanOrEqual(1);
  }
  expect(new Set(changes.map(({ node }) => node)).size).toBe(3);
  const servers = lines.findIndex((line) => line.endsWith('k3s-server is done'));
  const agents = lines.findIndex((line) => / node agent\d done$/.test(line));
  expect(servers).toBeGreaterThan(0);
  expect(agents).toBeGreaterThan(servers);
});
