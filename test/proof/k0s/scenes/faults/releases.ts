/** Releases that must not stay on a host: they crash, are another version, or are another file than the Plan says. */
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AuditLogs, statusIn } from '../../observe/audit.ts';
import { watchHosts } from '../../observe/hosts.ts';
import { ENDED } from '../../outcome.ts';
import { type PlanOptions, planFor, untilState } from '../../plan.ts';
import type { Refit } from '../../refit.ts';
import type { Scene } from '../../scene.ts';
import { after } from './next-release.ts';

/** It prints its version, and ends when it is started as a service. */
const CRASHING = 'v1.36.3+k0s.99';

/** What the agent says about a file that is another version than the Plan says. */
const OTHER_VERSION = /it reports version "[^"]+" instead of /;

export async function badReleases(scene: Scene, refit: Refit, version: string): Promise<void> {
  const { cluster, mirror } = scene;
  const next = after(scene, version);
  const crashing = join(cluster.directory, 'crashing');
  await writeFile(
    crashing,
    `#!/bin/sh\n[ "$1" != version ] || { echo ${CRASHING}; exit; }\nexit 7\n`,
  );
  await mirror.add('/crashing/k0s', crashing);
  const platform = { url: mirror.url('/crashing/k0s'), sha256: mirror.sha256('/crashing/k0s') };
  for (const [role, first] of [
    ['controller', 'c1'],
    ['worker', 'w1'],
  ] as const)
    await fails(scene, refit, {
      title: `a release that crashes on a ${role}`,
      version: CRASHING,
      running: version,
      node: first,
      // The agent puts the new binary in place, and the old one back.
      swaps: 2,
      plan: { id: first, platform, ...onlyOn(first) },
      says: /did not show v1\.36\.3\+k0s\.99 within .* of its restart \(its previous version runs again\)/,
    });
  await fails(scene, refit, {
    title: 'a file of another version',
    version: next,
    running: version,
    node: 'c1',
    swaps: 0,
    plan: { id: 'one', platform: mirror.platform(scene.to.version) },
    says: OTHER_VERSION,
  });
  await fails(scene, refit, {
    title: 'a file with another hash',
    version: next,
    running: version,
    node: 'c1',
    swaps: 0,
    plan: { id: 'two', platform: { ...mirror.platform(next), sha256: '0'.repeat(64) } },
    says: /sha256 of the download is [0-9a-f]{64}, wanted 0{64}/,
  });
}

interface Failing {
  readonly title: string;
  readonly version: string;
  /** The version that runs before and afterwards. */
  readonly running: string;
  /** The node that fails. */
  readonly node: string;
  readonly swaps: number;
  readonly plan: PlanOptions;
  /** What `refit why` says about the node. */
  readonly says: RegExp;
}

/** Checks that the plan fails at its first node, which runs the old version afterwards, and that no other node was touched. */
async function fails(scene: Scene, refit: Refit, failing: Failing): Promise<void> {
  const { cluster, checks } = scene;
  const { title, version, running, node, swaps, plan, says } = failing;
  await cluster.forget();
  const audit = new AuditLogs(cluster.controllers);
  await using watched = watchHosts(cluster, 1);
  await checks.check(`${title}: the plan fails at ${node}, and refit why says why`, async () => {
    await cluster.apply(planFor(scene, version, plan));
    const state = await untilState(scene, ENDED);
    const { stdout } = await refit.command('why', node);
    return [
      ...(state === 'ApplyFailed' ? [] : [`the plan is ${state}`]),
      ...(says.test(stdout) ? [] : [`refit why ${node} says: ${stdout}`]),
    ];
  });
  await checks.check(
    `${title}: ${node} runs the old version, and no other node was touched`,
    async () => {
      await cluster.settled(running);
      const others = audit
        .writes()
        .filter((write) => statusIn(write) === 'Signalled' && write.name !== node);
      const found = watched.swaps[node] ?? 0;
      return [
        ...(await cluster.left()),
        ...watched.violations,
        ...others.map(({ name }) => `${name} was signalled`),
        ...(found === swaps ? [] : [`the binary of ${node} was replaced ${found} times`]),
      ];
    },
  );
}

const onlyOn = (name: string): PlanOptions =>
  name.startsWith('c')
    ? { controllers: [name], workers: [] }
    : { controllers: [], workers: [name] };

/** Upgrades to a release whose kube-controller-manager never starts. The plan stops before the first worker. */
export async function withoutManager(scene: Scene, refit: Refit, version: string): Promise<void> {
  const { cluster, checks, withoutManager: release } = scene;
  if (release === undefined)
    throw new Error('this scene needs a release without a controller manager');
  await cluster.forget();
  await cluster.apply({
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: 'impatient' },
    spec: { deadlines: { ready: '60s' } },
  });
  const audit = new AuditLogs(cluster.controllers);
  await checks.check(
    'no controller manager: the plan fails before the first worker, and says why',
    async () => {
      await cluster.apply(planFor(scene, release.version, { id: 'three' }));
      const state = await untilState(scene, ENDED);
      const { stdout } = await refit.command('why');
      const workers = audit
        .writes()
        .filter((write) => statusIn(write) === 'Signalled' && write.name.startsWith('w'));
      return [
        ...(state === 'ApplyFailed' ? [] : [`the plan is ${state}`]),
        ...(stdout.includes('kube-controller-manager') ? [] : [`refit why says: ${stdout}`]),
        ...workers.map(({ name }) => `${name} was signalled`),
      ];
    },
  );
  await checks.check('no controller manager: refit rollback brings the old one back', async () => {
    const { ok, stdout, stderr } = await refit.command(
      'rollback',
      'autopilot',
      '--reason',
      'no manager',
      '--yes',
    );
    if (!ok) return [stdout + stderr];
    const state = await untilState(scene, ['Completed', 'Warning', 'IncompleteTargets']);
    await cluster.settled(version);
    return state === 'Completed' ? await cluster.left() : [`the plan is ${state}`];
  });
}
