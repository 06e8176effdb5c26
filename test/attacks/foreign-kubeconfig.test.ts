/**
 * Tests that the agent refuses a kubeconfig that another user can change, or that names a file which another user can
 * change. Otherwise commands of that user would run as root.
 */
import { chmod, chown, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Attacker, attackAsNobody, NOBODY, startNode, useCluster } from './rig.ts';

const cluster = useCluster();

interface Kubeconfig {
  clusters: { cluster: object }[];
  users: { user: object }[];
}

type Change = (config: Kubeconfig, directory: string) => void;

/** Returns the error with which the agent ends at its start. The kubeconfig is in a directory of root. */
async function refusal(
  change: Change,
  attack: (path: string, attacker: Attacker) => Promise<string | void>,
) {
  await using attacker = await Attacker.arrive();
  await using node = await startNode();
  const config = JSON.parse(await readFile(cluster().kubeconfig, 'utf8')) as Kubeconfig;
  change(config, attacker.directory);
  const path = join(node.host.directory, 'agent.kubeconfig');
  await writeFile(path, JSON.stringify(config), { mode: 0o600 });
  const agent = node.startAgent('--kubeconfig', (await attack(path, attacker)) ?? path);
  expect(await agent.exited).not.toBe(0);
  return agent.log.join('\n');
}

const asItIs: Change = () => undefined;

test('others may write to it', async () => {
  const text = await refusal(asItIs, async (path) => await chmod(path, 0o666));
  expect(text).toMatch(
    /REFIT_FILE: cannot use the kubeconfig: others may write to .*; run "chmod go-w /,
  );
});

attackAsNobody('it belongs to another user', async () => {
  const text = await refusal(asItIs, async (path) => await chown(path, NOBODY, NOBODY));
  expect(text).toContain(`belongs to user ${NOBODY}`);
});

attackAsNobody("it is found through another user's directory", async () => {
  const text = await refusal(asItIs, async (path, { directory }) => {
    await symlink(path, join(directory, 'link'));
    return join(directory, 'link');
  });
  expect(text).toContain(`belongs to user ${NOBODY}`);
});

attackAsNobody.each<[string, (file: string) => Partial<Record<'cluster' | 'user', object>>]>([
  ['its authority', (file) => ({ cluster: { 'certificate-authority': file } })],
  ['its token', (file) => ({ user: { tokenFile: file } })],
  [
    'its certificate',
    (file) => ({ user: { 'client-certificate': file, 'client-key': '/missing' } }),
  ],
  [
    'its command',
    (file) => ({
      user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: file } },
    }),
  ],
])("%s lies in another user's directory", async (_what, named) => {
  const change: Change = (config, directory) => {
    const { cluster: more, user } = named(join(directory, 'theirs'));
    for (const each of config.clusters) Object.assign(each.cluster, more);
    for (const each of config.users) Object.assign(each.user, user);
  };
  const text = await refusal(change, async () => await Promise.resolve());
  expect(text).toContain(`REFIT_FILE: cannot use the kubeconfig: `);
  expect(text).toContain(`belongs to user ${NOBODY}`);
});
