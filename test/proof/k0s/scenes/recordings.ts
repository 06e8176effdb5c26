/** Records what k0s alone does, so that the doubles of the tests can be compared with it. */
import { join } from 'node:path';
import { until } from '../../wait.ts';
import { AuditLogs } from '../observe/audit.ts';
import { untilQuiet, writeRecording } from '../observe/recording.ts';
import type { Release } from '../options.ts';
import { ENDED } from '../outcome.ts';
import { type PlanOptions, planFor, untilState } from '../plan.ts';
import type { Scene } from '../scene.ts';
import { pod, podsOf } from '../workloads.ts';

interface Situation {
  /** The name of the file. */
  readonly name: string;
  readonly plan: PlanOptions;
  readonly version: string;
  readonly state: (typeof ENDED)[number];
  readonly hasPods?: boolean;
}

export async function recordK0s(scene: Scene): Promise<void> {
  const { from, to, later } = scene;
  const [next] = later;
  if (next === undefined) throw new Error('this scene needs another release');
  await record(scene, from, to);
  await record(scene, to, next);
}

/** Records a release of k0s while it is replaced by another release. */
async function record(scene: Scene, release: Release, next: Release): Promise<void> {
  const { cluster, checks, mirror, record: folder = '' } = scene;
  const workers = cluster.workers.map(({ name }) => name);
  const situations: readonly Situation[] = [
    { name: '3c3w-concurrent1', plan: {}, version: next.version, state: 'Completed' },
    {
      name: '3w-drain-concurrent3',
      plan: { controllers: [], workers, concurrent: 3 },
      version: next.version,
      state: 'Completed',
      hasPods: true,
    },
    {
      name: 'wrong-sha',
      plan: {
        controllers: [],
        workers: ['w3'],
        platform: { ...mirror.platform(next.version), sha256: '0'.repeat(64) },
      },
      version: next.version,
      state: 'ApplyFailed',
    },
    {
      name: 'missing-node',
      plan: { controllers: [], workers: ['w1', 'w9'] },
      version: next.version,
      state: 'IncompleteTargets',
    },
  ];
  for (const { name, plan, version, state, hasPods } of situations) {
    await cluster.reset(release, 'on');
    if (hasPods) await addPods(scene);
    await until('k0s to lead', 120, async () => (await cluster.leader()) !== undefined);
    const audit = new AuditLogs(cluster.controllers);
    await untilQuiet(audit);
    await checks.check(`${release.version}, ${name}: the plan ends as ${state}`, async () => {
      await cluster.apply(planFor(scene, version, { id: name, ...plan }));
      const found = await untilState(scene, ENDED);
      await untilQuiet(audit);
      await writeRecording(join(folder, release.version), name, audit.writes());
      return found === state ? [] : [`it ended as ${found}`];
    });
  }
}

async function addPods({ cluster }: Scene): Promise<void> {
  const names = cluster.workers.flatMap(({ name }) => [`a-${name}`, `b-${name}`]);
  for (const name of names) await cluster.apply(pod({ name, node: name.slice(2) }));
  for (const name of names)
    await until(`the pod ${name} to run`, 180, async () =>
      (await podsOf(cluster, `app=${name}`)).some(({ phase }) => phase === 'Running'),
    );
}
