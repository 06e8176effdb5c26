/** Tests upgrades over SSH whose runs are killed again and again, over each SSH server and on a real API server. */
import { access } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startJavascriptServer } from '../../sandbox/sshd/javascript-server.ts';
import type { StartServer } from '../../sandbox/sshd/server.ts';
import { logOf } from '../../sandbox/sshd/stand-in-host.ts';
import { nodes } from '../../src/kube/resources.ts';
import { startDebianServer, whyNoSshd } from '../support/kubeadm/debian-server.ts';
import { cutOffWithout, holdAt, isHeld, lose, textOf } from '../support/kubeadm/hooks.ts';
import {
  kill,
  labelledNodes,
  openScene,
  type Run,
  type Scene,
  TO,
  versions,
} from '../support/kubeadm/suite.ts';
import { leftOut } from '../support/left-out.ts';
import { WHOLE } from '../support/whole.ts';
import { HOSTS, MANIFEST } from './kubeadm-hosts.ts';

type Moment = 'before' | 'after';
/** The moments at which a test kills a run: when the step is requested, or when the step is done but not yet reported. */
const STEPS: [Moment, string][] = [
  ['before', 'stage'],
  ['after', 'stage'],
  ['before', 'kubeadm'],
  ['after', 'kubeadm'],
  ['after', 'kubelet'],
];
/**
 * The moments at which a test kills a run, by host. The SSH server affects neither the other steps nor the refusals. So
 * for the second server, the step `kubeadm` is enough.
 */
type Kills = Readonly<
  Record<'cp1' | 'w2', readonly [Moment, string][]> & { cp2?: readonly [Moment, string][] }
>;
const EVERY_KIND: Kills = {
  cp1: STEPS,
  cp2: WHOLE ? STEPS.slice(1) : STEPS.slice(3, 4),
  w2: STEPS.slice(4),
};
const LEADER_ONLY: Kills = { cp1: STEPS.slice(2, 4), ...(WHOLE && { cp2: [] }), w2: [] };
const SERVERS: [string, StartServer, string | undefined, Kills][] = [
  ['a server in JavaScript', startJavascriptServer, undefined, EVERY_KIND],
  ["Debian's sshd", startDebianServer, whyNoSshd(), LEADER_ONLY],
];
/** The duration is short, because the run after a killed run waits until the lease has expired. */
const LEASE = ['--lease-duration', '3s'];

for (const [name, startServer, why, kills] of SERVERS) {
  if (why === undefined)
    describe(`over ${name}`, () => {
      describe('an upgrade that is killed again and again', () => killed(startServer, kills));
    });
  else leftOut(`over ${name}`, why);
}

function killed(startServer: StartServer, kills: Kills): void {
  let scene: Scene;
  let manifest = '';
  const apply = (): Run => scene.refit('apply', '--yes', '-m', manifest, ...LEASE);
  beforeAll(async () => {
    scene = await openScene(startServer);
    manifest = await scene.cluster.manifest(TO);
  });
  afterAll(async () => await scene[Symbol.asyncDispose]());

  const killAt = async (name: string, moment: Moment, step: string): Promise<Run> => {
    const host = scene.cluster.host(name);
    await holdAt(host, moment, textOf(step));
    const run = apply();
    await isHeld(host, run);
    await kill(run);
    await lose(host);
    return run;
  };

  const follower = (steps: readonly [Moment, string][]): void => {
    test('where kubeadm itself is cut off: that host has failed, and no other is touched', async () => {
      const host = scene.cluster.host('cp2');
      await cutOffWithout(host, 'kube-apiserver');
      const run = apply();
      expect(await run.ended).toBe(1);
      expect(run.stdout).toMatch(
        /controller cp2 failed: step kubeadm failed with exit code 137: .*\n[^]*has failed: cp2 failed\n$/,
      );
      await expect(access(join(host.root, MANIFEST))).rejects.toThrow('ENOENT');
      await expect(
        access(join(scene.cluster.host('w1').root, 'var/lib/refit/kubeadm.journal')),
      ).rejects.toThrow('ENOENT');
    });

    test('as soon as the manifest is put back', async () => {
      const run = await killAt('cp2', 'before', 'stage');
      expect(run.stdout).toContain('cp2: restored kube-apiserver.yaml');
      await access(join(scene.cluster.host('cp2').root, MANIFEST));
    });

    test.each(steps)('%s %s', async (moment, step) => void (await killAt('cp2', moment, step)));
  };

  test.each(kills.cp1)(
    'on cp1, %s %s',
    async (moment, step) => void (await killAt('cp1', moment, step)),
  );

  if (kills.cp2) describe('on cp2', () => follower(kills.cp2 ?? []));

  test('on w1, kubeadm continues by itself when the run is killed', async () => {
    const run = apply();
    const begun = async (): Promise<void> =>
      expect(await logOf(scene.cluster.host('w1'), 'kubeadm')).toHaveLength(1);
    await vi.waitFor(begun, { timeout: 150_000, interval: 10 });
    await kill(run);
  });

  test.each(kills.w2)(
    'on w2, %s %s',
    async (moment, step) => void (await killAt('w2', moment, step)),
  );

  test('after killed runs, the same command finishes the upgrade and repeats no completed step', async () => {
    const run = apply();
    expect([await run.ended, run.stderr]).toEqual([0, '']);
    expect(await versions(scene)).toEqual(HOSTS.map((name) => [name, TO]));
    for (const host of scene.cluster.hosts) {
      // The step that was interrupted on cp2 runs again there.
      const times = host.name === 'cp2' && kills.cp2 ? 2 : 1;
      expect([host.name, (await logOf(host, 'kubeadm')).length]).toEqual([host.name, times]);
      expect([host.name, (await logOf(host, 'kubelet')).length]).toEqual([host.name, 1]);
    }
    const { items } = await scene.cluster.client.list(nodes);
    expect(items.filter(({ spec }) => spec?.unschedulable)).toEqual([]);
    expect(await labelledNodes(scene)).toEqual([]);
  });
}
