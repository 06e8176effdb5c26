/** The Plans of the K3s documentation, their Jobs, and what Refit says about them. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type RunResult, run } from '../../../../tools/controlplane/run.ts';
import { until } from '../../wait.ts';
import { NAMESPACE } from '../controllers.ts';
import { administer, get, type Scene } from '../scene.ts';
import { ROLE } from './install.ts';
import { IMAGE } from './programs.ts';

export const SERVERS = 'server-plan';
export const AGENTS = 'agent-plan';
const SECONDS = 600;

export interface Plan {
  readonly status?: {
    readonly latestVersion?: string;
    readonly latestHash?: string;
    readonly applying?: readonly string[];
    readonly conditions?: readonly {
      readonly type: string;
      readonly status: string;
      readonly reason?: string;
      readonly message?: string;
    }[];
  };
}

export interface Job {
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly status: { readonly succeeded?: number; readonly failed?: number };
}

interface ContainerStatus {
  readonly name: string;
  readonly state: {
    readonly running?: { readonly startedAt: string };
    readonly terminated?: {
      readonly startedAt: string;
      readonly finishedAt: string;
      readonly exitCode: number;
    };
  };
}

export interface Pod {
  readonly metadata: {
    readonly name: string;
    readonly labels: Readonly<Record<string, string>>;
  };
  readonly status: {
    readonly initContainerStatuses?: readonly ContainerStatus[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

/** `waits` makes the Plan of the agents wait for the Plan of the servers. */
interface Wanted {
  readonly servers?: string;
  readonly agents?: string;
  readonly waits?: boolean;
}

/** Applies the Plans as the K3s documentation has them. */
export async function applyPlans(
  scene: Scene,
  { servers, agents, waits = true }: Wanted,
): Promise<void> {
  const image = IMAGE;
  const plan = (name: string, version: string, operator: object, more: object) => ({
    apiVersion: 'upgrade.cattle.io/v1',
    kind: 'Plan',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      concurrency: 1,
      cordon: true,
      nodeSelector: { matchExpressions: [{ key: ROLE, ...operator }] },
      serviceAccountName: 'system-upgrade',
      ...more,
      upgrade: { image },
      version,
    },
  });
  const prepare = waits ? { prepare: { args: ['prepare', SERVERS], image } } : {};
  const ofServers = { operator: 'In', values: ['true'] };
  const items = [
    ...(servers === undefined ? [] : [plan(SERVERS, servers, ofServers, {})]),
    ...(agents === undefined ? [] : [plan(AGENTS, agents, { operator: 'DoesNotExist' }, prepare)]),
  ];
  await apply(scene, 'plans', { apiVersion: 'v1', kind: 'List', items });
}

export async function apply(scene: Scene, name: string, object: object): Promise<void> {
  const file = join(scene.options.directory, `${name}.json`);
  await writeFile(file, JSON.stringify(object));
  await administer(scene, 'apply', '-f', file);
}

export const planOf = async (scene: Scene, name: string): Promise<Plan> =>
  await get<Plan>(scene, 'plans.upgrade.cattle.io', name, '-n', NAMESPACE);

export function conditionOf({ status }: Plan, type: string) {
  return status?.conditions?.find((each) => each.type === type);
}

/** Waits until the condition `Complete` of the Plan has the reason, at this version. */
export async function reaches(
  scene: Scene,
  name: string,
  version: string,
  reason: string,
): Promise<Plan> {
  let plan: Plan = {};
  await until(`${name} to be ${reason} at ${version}`, SECONDS, async () => {
    plan = await planOf(scene, name);
    const isLatest = plan.status?.latestVersion === version.replace('+', '-');
    return isLatest && conditionOf(plan, 'Complete')?.reason === reason;
  });
  return plan;
}

const labelled = (plan: string, version: string): string[] => [
  '-n',
  NAMESPACE,
  '-l',
  `upgrade.cattle.io/plan=${plan},upgrade.cattle.io/version=${version.replace('+', '-')}`,
];

export const jobsOf = async (scene: Scene, plan: string, version: string): Promise<Job[]> =>
  (await get<{ items: Job[] }>(scene, 'jobs', ...labelled(plan, version))).items;

export const podsOf = async (scene: Scene, plan: string, version: string): Promise<Pod[]> =>
  (await get<{ items: Pod[] }>(scene, 'pods', ...labelled(plan, version))).items;

export const containerOf = ({ status }: Pod, name: string): ContainerStatus | undefined =>
  [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])].find(
    (each) => each.name === name,
  );

/** Resolves with what a container of the pods of a Plan said, for each pod. Keeps it in the logs. */
export async function saidBy(
  scene: Scene,
  plan: string,
  version: string,
  container: string,
): Promise<string[]> {
  const said: string[] = [];
  for (const { metadata } of await podsOf(scene, plan, version)) {
    const words = ['-n', NAMESPACE, 'logs', metadata.name, '-c', container];
    const text = await administer(scene, ...words).catch(() => '');
    await keep(scene, `${metadata.name}-${container}`, text);
    said.push(text);
  }
  return said;
}

/** Waits until a container of the pods of a Plan says these words. */
export async function says(
  scene: Scene,
  [plan, version, container]: readonly [plan: string, version: string, container: string],
  words: string,
): Promise<void> {
  await until(`${container} of ${plan} to say "${words}"`, SECONDS, async () =>
    (await saidBy(scene, plan, version, container)).some((text) => text.includes(words)),
  );
}

let commands = 0;

/** Runs `refit` as a person does, and keeps its output in the logs. */
export async function refit(scene: Scene, ...args: readonly string[]): Promise<RunResult> {
  const { options, cluster } = scene;
  const words = [options.refit, ...args, '--kubeconfig', cluster.kubeconfig];
  const result = await run(process.execPath, words, {
    environment: { TMPDIR: options.directory },
  });
  commands += 1;
  const name = `${String(commands).padStart(2, '0')}-refit-${args.slice(0, 2).join('-').replaceAll('/', '-')}`;
  await keep(scene, name, result.stdout + result.stderr);
  return result;
}

async function keep({ options }: Scene, name: string, text: string): Promise<void> {
  await mkdir(options.logs, { recursive: true });
  await writeFile(join(options.logs, `${name}.log`), text);
}

/** Returns the words that the text lacks. Line breaks count as spaces. */
export function lacking(text: string, ...words: readonly string[]): string[] {
  const flat = text.replaceAll(/\s+/g, ' ');
  return words.flatMap((word) =>
    flat.includes(word) ? [] : [`"${word}" is missing in: ${flat.slice(0, 800)}`],
  );
}
