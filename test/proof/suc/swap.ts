/**
 * Part `swap`: a controller begins a Plan, and the other controller takes over while a Job of this Plan runs. No Job may
 * be replaced or doubled.
 */
import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { differing } from '../checks.ts';
import type { Machine } from '../machines/machine.ts';
import { until } from '../wait.ts';
import { type Controller, NAMESPACE, ORIGINAL, REFIT } from './controllers.ts';
import { administer, get, type Scene } from './scene.ts';

interface Job {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly status: {
    readonly succeeded?: number;
    readonly failed?: number;
    readonly active?: number;
  };
}

interface Plan {
  readonly status?: {
    readonly latestHash?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
  };
}

interface Node {
  readonly metadata: { readonly labels: Readonly<Record<string, string>> };
  readonly spec: { readonly unschedulable?: boolean };
}

/** A Plan of this proof, and how its Jobs disrupt their nodes. */
interface Work {
  readonly plan: string;
  readonly disruption: object;
}

const SECONDS = 300;

export async function proveSwap(scene: Scene): Promise<void> {
  await ORIGINAL.install(scene);
  await takeOver(scene, ORIGINAL, REFIT, { plan: 'cordoned', disruption: { cordon: true } });
  await takeOver(scene, REFIT, ORIGINAL, {
    plan: 'drained',
    disruption: { drain: { force: true } },
  });
  await ORIGINAL.remove(scene);
}

/** `from` runs at the beginning, and `to` at the end. */
async function takeOver(scene: Scene, from: Controller, to: Controller, work: Work): Promise<void> {
  const { checks, cluster, log } = scene;
  const { plan } = work;
  const name = `${from.name} → ${to.name}`;
  await start(scene, work);
  const first = await running(scene, plan);
  log(`${name}: the Job on ${first.name} runs`);
  const [begun] = await jobsOf(scene, plan, 'before');
  await from.remove(scene);
  await to.install(scene);
  await checks.check(`${name}: the running Job stays, and no Job joins it`, async () => {
    const now = await jobsOf(scene, plan, 'after');
    const uids = now.map(({ metadata }) => metadata.uid);
    return [
      ...differing({ 'the Jobs': uids.join() }, begun?.metadata.uid),
      ...differing({ 'active pods': now[0]?.status.active }, 1),
    ];
  });
  await finish(first, plan);
  await checks.check(`${name}: the next node starts when the first one is done`, async () => {
    const second = await running(scene, plan, first);
    await finish(second, plan);
    return [];
  });
  await checks.check(`${name}: the Plan completes`, async () => {
    await until(`${plan} to complete`, SECONDS, async () => isComplete(await planOf(scene, plan)));
    return [];
  });
  await checks.check(`${name}: each node ran one Job, once`, async () => {
    const jobs = await jobsOf(scene, plan, 'end');
    const uids = jobs.map(({ metadata }) => metadata.uid);
    const starts = await Promise.all(
      cluster.workers.map(async (each) => await startsOn(each, plan)),
    );
    return [
      ...differing({ 'the number of Jobs': jobs.length }, cluster.workers.length),
      ...(uids.includes(begun?.metadata.uid ?? '') ? [] : ['the first Job is another object now']),
      ...jobs.flatMap(({ metadata, status }) =>
        differing({ [`${metadata.name} succeeded`]: status.succeeded }, 1),
      ),
      ...jobs.flatMap(({ metadata, status }) =>
        differing({ [`${metadata.name} failed`]: status.failed ?? 0 }, 0),
      ),
      ...cluster.workers.flatMap((machine, index) =>
        differing({ [`starts on ${machine.name}`]: starts[index] }, 1),
      ),
    ];
  });
  await checks.check(
    `${name}: the nodes have the label of the Plan, and take pods again`,
    async () => {
      const { status } = await planOf(scene, plan);
      const wrong = cluster.workers.map(async (machine) => {
        const { metadata, spec } = await get<Node>(scene, 'node', machine.name);
        const label = metadata.labels[`plan.upgrade.cattle.io/${plan}`];
        return [
          ...differing({ [`the label of ${machine.name}`]: label }, status?.latestHash),
          ...differing({ [`${machine.name} is cordoned`]: spec.unschedulable ?? false }, false),
        ];
      });
      return (await Promise.all(wrong)).flat();
    },
  );
}

/** Creates the Plan. Each Job notes its start on its machine, and then waits for the file that `finish` writes. */
async function start(scene: Scene, { plan, disruption }: Work): Promise<void> {
  const script = `echo started >>/host${startsFile(plan)}; until [ -e /host${endFile(plan)} ]; do sleep 1; done`;
  const expression = { key: 'node-role.kubernetes.io/control-plane', operator: 'DoesNotExist' };
  const object = {
    apiVersion: 'upgrade.cattle.io/v1',
    kind: 'Plan',
    metadata: { name: plan, namespace: NAMESPACE },
    spec: {
      concurrency: 1,
      version: 'v1.0.0',
      nodeSelector: { matchExpressions: [expression] },
      serviceAccountName: 'system-upgrade',
      ...disruption,
      upgrade: { image: 'library/alpine:3.18', command: ['sh', '-c'], args: [script] },
    },
  };
  const file = join(scene.options.directory, `${plan}.json`);
  await writeFile(file, JSON.stringify(object));
  await administer(scene, 'apply', '-f', file);
}

const startsFile = (plan: string): string => `/var/log/starts-${plan}`;
const endFile = (plan: string): string => `/var/log/end-${plan}`;

async function startsOn({ root }: Machine, plan: string): Promise<number> {
  const file = join(root, startsFile(plan));
  return existsSync(file) ? (await readFile(file, 'utf8')).trim().split('\n').length : 0;
}

async function finish({ root }: Machine, plan: string): Promise<void> {
  await writeFile(join(root, endFile(plan)), '');
}

/** Waits until the Job of the Plan runs on a machine other than `done`, and returns this machine. */
async function running({ cluster }: Scene, plan: string, done?: Machine): Promise<Machine> {
  const found: Machine[] = [];
  await until(`a Job of ${plan}`, SECONDS, async () => {
    for (const machine of cluster.workers)
      if (machine !== done && (await startsOn(machine, plan)) > 0) found.push(machine);
    return found.length > 0;
  });
  const [first] = found;
  if (first === undefined) throw new Error(`no Job of ${plan} runs`);
  return first;
}

/** Returns the Jobs of the Plan, and keeps them in the logs, because a Job that was replaced shows there what differs. */
const jobsOf = async (scene: Scene, plan: string, moment: string): Promise<Job[]> => {
  const label = `upgrade.cattle.io/plan=${plan}`;
  const list = await get<{ items: Job[] }>(scene, 'jobs', '-n', NAMESPACE, '-l', label);
  const file = join(scene.options.logs, `jobs-${plan}-${moment}.json`);
  await writeFile(file, JSON.stringify(list, undefined, 2));
  return list.items;
};

const planOf = async (scene: Scene, plan: string): Promise<Plan> =>
  await get<Plan>(scene, 'plans.upgrade.cattle.io', plan, '-n', NAMESPACE);

const isComplete = ({ status }: Plan): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Complete' && is === 'True') ?? false;
