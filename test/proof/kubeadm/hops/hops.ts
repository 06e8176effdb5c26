/**
 * Tests upgrades over several minor versions, with the manifest and the commands of
 * docs/guides/kubeadm/minor-versions.md.
 */
import { dirname } from 'node:path';
import { lastLines } from '../../../../tools/controlplane/run.ts';
import type { Machine } from '../../machines/machine.ts';
import { changed, lastingContainers, startLasting } from '../containers.ts';
import type { Scene } from '../upgrade.ts';
import { rolledOut, settled, verify } from '../verify.ts';

interface Hop {
  readonly version: string;
  readonly workersAt: string;
  /** Patterns of lines that the plan must contain. */
  readonly said: readonly string[];
}

export async function upgradeByHops(scene: Scene): Promise<void> {
  const { machines } = scene.cluster;
  await takeHops(scene, {}, ({ before, version, comes }) => ({
    version,
    workersAt: version,
    said: [...rows(machines, before, version), ...comes],
  }));
}

/**
 * Upgrades with `workersSkipMinors`. The workers keep their version until the control planes have the last version, and
 * then go directly to the last version.
 */
export async function skipMinors(scene: Scene): Promise<void> {
  const { cluster, from, to } = scene;
  await takeHops(scene, { workersSkipMinors: true }, ({ before, version, comes }) => {
    const workersAt = version === to ? to : from;
    const workers =
      workersAt === to
        ? rows(cluster.workers, from, to)
        : [`^Stays at its version until ${to}: w1`];
    return {
      version,
      workersAt,
      said: [...rows(cluster.controlPlanes, before, version), ...workers, ...comes],
    };
  });
}

const rows = (machines: readonly Machine[], before: string, version: string): string[] =>
  machines.map(({ name }) => `^${name} .*${before} → ${version}`);

interface Steps {
  readonly before: string;
  readonly version: string;
  /** The lines of the plan about the hops after this one. */
  readonly comes: readonly string[];
}

async function takeHops(scene: Scene, more: object, hopOf: (steps: Steps) => Hop): Promise<void> {
  const { cluster, operator, checks, from, hops, to } = scene;
  await operator.prepare({
    hops: hops.map((version) => ({ version, binaries: operator.binaries(version) })),
    ...more,
  });
  await settled(cluster, operator);
  await startLasting(operator, dirname(operator.manifest));
  await checks.check(`a cluster of ${from} is there`, async () => await rolledOut(operator, from));
  const way = [from, ...hops, to];
  for (const [index, version] of way.slice(1).entries()) {
    const [next] = way.slice(index + 2);
    const comes = next === undefined ? [] : [`^After ${version} comes ${next}`];
    await takeHop(scene, hopOf({ before: way[index] ?? from, version, comes }));
  }
  await checks.check('apply once more: nothing is to be done', async () => {
    const { ok, stdout, stderr } = await operator.kubeadm('apply', '--yes');
    return ok && /nothing/i.test(stdout) ? [] : [lastLines(stdout + stderr)];
  });
}

async function takeHop(
  { cluster, operator, checks }: Scene,
  { version, workersAt, said }: Hop,
): Promise<void> {
  await checks.check(`plan: says who goes to ${version}, and what comes after`, async () => {
    const { ok, stdout, stderr } = await operator.kubeadm('plan');
    const missing = said.filter((pattern) => !new RegExp(pattern, 'm').test(stdout));
    return [
      ...(ok ? [] : [lastLines(stdout + stderr)]),
      ...missing.map((pattern) => `the plan lacks ${pattern}`),
    ];
  });
  const containers = await lastingContainers(operator);
  await checks.check(
    `apply to ${version}: ends with exit code 0`,
    async () => await operator.succeeds('apply', '--yes'),
  );
  await verify(`at ${version}`, checks, cluster, operator, version, workersAt);
  await checks.check(`at ${version}: no container was restarted that no drain evicts`, async () =>
    changed(containers, await lastingContainers(operator)),
  );
}
