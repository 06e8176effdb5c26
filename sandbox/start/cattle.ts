/** Demonstrates system-upgrade-controller: Nodes and Jobs in memory, upgraded by two Plans of `upgrade.cattle.io`, as K3s documents them. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { CattlePlan } from '../../src/api/cattle/plan.ts';
import { cattlePlans } from '../../src/api/kinds.ts';
import { table } from '../../src/cli/phrases.ts';
import type { ShownPlan } from '../../src/cli/status/json-form.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { loadClusterConfig } from '../../src/kube/config/kubeconfig.ts';
import { type Job, jobs, namespaces, nodes } from '../../src/kube/resources.ts';
import { ifFound } from '../../src/kube/status-error.ts';
import { createClient } from '../../src/kube/transport/http-client.ts';
import { rfc3339, sleep, systemClock } from '../../src/util/clock.ts';
import { EXIT } from '../../src/util/errors.ts';
import { withPlusSign } from '../../src/util/version.ts';
import { startProcess } from '../../tools/controlplane/process.ts';
import { createNode, installDefinitions, reportReady } from '../cluster/objects.ts';
import { startSandboxPlane } from '../cluster/plane.ts';
import { runJobs } from '../hosts/job-runner.ts';
import { REFIT } from '../refit.ts';
import type { Demonstration, Ground } from './demonstration.ts';
import { follow } from './follow.ts';

const SERVERS = ['server1', 'server2', 'server3'];
const AGENTS = ['agent1', 'agent2', 'agent3', 'agent4', 'agent5'];
const NODES = SERVERS.length + AGENTS.length;
const CONTROL_PLANE = 'node-role.kubernetes.io/control-plane';
/** Two servers in progress at the same time can cost the quorum of etcd. */
const SERVERS_AT_ONCE = 1;
const AGENTS_AT_ONCE = 2;
const SERVER_PLAN = 'k3s-server';
const AGENT_PLAN = 'k3s-agent';
const FROM = 'v1.36.2+k3s1';
const TO = 'v1.36.3+k3s1';
const JOB_MS = 2000;
const NAMESPACE = 'system-upgrade';
const CONTROLLER = 'system-upgrade-controller';

export const cattle: Demonstration = {
  dialect: 'cattle',
  about: [
    `Starts an API server in memory with ${NODES} Nodes, with Refit as Rancher's ${CONTROLLER}; applies`,
    'a Plan for the servers and a Plan for the agents, shows their progress and ends with a summary. Jobs are simulated: no',
    'container runs. Everything is removed at the end.',
  ],
  flags: {},
  help: {},
  async run(_flags, ground) {
    const { directory, started, abort, say } = ground;
    say(`Starting an API server in memory with ${NODES} Nodes and the ${CONTROLLER}…`);
    const plane = await startSandboxPlane(directory);
    started.defer(async () => await plane.stop());
    const kubeconfig = await plane.kubeconfig('admin');
    const client = createClient(await loadClusterConfig({ path: kubeconfig }));
    started.defer(() => client.close());
    await createObjects(client, abort);
    await startController(kubeconfig, ground);
    for (const plan of [serverPlan(), agentPlan()]) await client.create(cattlePlans, plan);
    say(
      `Plans applied: all nodes from ${FROM} to ${TO}, with cordon:\nservers ${SERVERS_AT_ONCE} at a time, then agents ${AGENTS_AT_ONCE} at a time.\n`,
    );
    const { code, views, waits } = await follow(kubeconfig, ground);
    if (views.length === 0 || code === EXIT.interrupted) return code;
    say('');
    for (const line of await summarize(client, views, waits)) say(line);
    await ground.keep?.(kubeconfig);
    return code;
  },
};

async function createObjects(client: KubeClient, abort: AbortSignal): Promise<void> {
  await installDefinitions(client, systemClock, abort);
  await client.create(namespaces, { metadata: { name: NAMESPACE } });
  for (const name of [...SERVERS, ...AGENTS]) {
    const role = SERVERS.includes(name) ? { [CONTROL_PLANE]: 'true' } : {};
    await createNode(client, name, { 'example.com/version': FROM.replace('+', '-'), ...role });
    await reportReady(client, name, FROM, rfc3339(systemClock.now()));
  }
}

async function startController(kubeconfig: string, { directory, started }: Ground): Promise<void> {
  await mkdir(join(directory, 'logs'), { recursive: true });
  const stop = new AbortController();
  const client = createClient(await loadClusterConfig({ path: kubeconfig }));
  const played = runJobs(
    {
      client,
      namespace: NAMESPACE,
      clock: systemClock,
      durationMs: JOB_MS,
      versionAfter,
      prepared: preparedIn(client),
    },
    stop.signal,
  );
  started.defer(async () => {
    stop.abort(new Error('the demonstration is over'));
    await played;
    client.close();
  });
  const controller = await startProcess({
    name: CONTROLLER,
    command: process.execPath,
    args: [REFIT, CONTROLLER],
    environment: {
      SYSTEM_UPGRADE_CONTROLLER_KUBE_CONFIG: kubeconfig,
      SYSTEM_UPGRADE_CONTROLLER_NAME: CONTROLLER,
      SYSTEM_UPGRADE_CONTROLLER_NAMESPACE: NAMESPACE,
      SYSTEM_UPGRADE_CONTROLLER_LEADER_ELECT: 'true',
      SYSTEM_UPGRADE_CONTROLLER_INSTALL_CRD: 'true',
    },
    directory,
    ready: () => Promise.resolve(true),
    clock: systemClock,
  });
  started.defer(async () => await controller.stop());
}

const POLL_MS = 100;

/**
 * Returns what the container `prepare` of a Job does, as the image of k3s does it: the one of an agent waits until no
 * server has a slot, and then until every server runs exactly the version of the Job.
 */
function preparedIn(client: KubeClient) {
  return async (job: Job, abort: AbortSignal): Promise<void> => {
    if (job.metadata.labels?.['upgrade.cattle.io/plan'] !== AGENT_PLAN) return;
    const isIdle = async (): Promise<boolean> => {
      const options = { namespace: NAMESPACE, abort };
      const plan = await ifFound(client.get(cattlePlans, SERVER_PLAN, options));
      return plan !== undefined && (plan.status?.applying ?? []).length === 0;
    };
    while (!(await isIdle())) await sleep(systemClock, POLL_MS, abort);
    const areUpgraded = async (): Promise<boolean> => {
      const { items } = await client.list(nodes, { labelSelector: CONTROL_PLANE, abort });
      const running = new Set(items.map(({ status }) => status?.nodeInfo?.kubeletVersion));
      return running.size === 1 && running.has(versionAfter(job));
    };
    while (!(await areUpgraded())) await sleep(systemClock, POLL_MS, abort);
  };
}

interface JobTemplate {
  readonly spec: {
    readonly containers: readonly {
      readonly env?: readonly { readonly name: string; readonly value?: string }[];
    }[];
  };
}

/**
 * Returns the version that the image of k3s would install: the version that the Plan resolved. The tag of the image has
 * a dash instead of the plus sign.
 */
function versionAfter({ spec }: Job): string | undefined {
  const template = spec?.['template'] as JobTemplate | undefined;
  const environment = template?.spec.containers[0]?.env ?? [];
  const version = environment.find(({ name }) => name === 'SYSTEM_UPGRADE_PLAN_LATEST_VERSION');
  return version?.value === undefined ? undefined : withPlusSign(version.value);
}

function serverPlan(): CattlePlan {
  return examplePlan(SERVER_PLAN, {
    concurrency: SERVERS_AT_ONCE,
    nodeSelector: { matchExpressions: [{ key: CONTROL_PLANE, operator: 'Exists' }] },
  });
}

/** The Plan of the agents. No agent may be newer than a server, so `prepare` waits for the Plan of the servers. */
function agentPlan(): CattlePlan {
  return examplePlan(AGENT_PLAN, {
    concurrency: AGENTS_AT_ONCE,
    nodeSelector: { matchExpressions: [{ key: CONTROL_PLANE, operator: 'DoesNotExist' }] },
    prepare: { image: 'rancher/k3s-upgrade', args: ['prepare', SERVER_PLAN] },
  });
}

function examplePlan(name: string, own: Partial<CattlePlan['spec']>): CattlePlan {
  return {
    apiVersion: 'upgrade.cattle.io/v1',
    kind: 'Plan',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      version: TO,
      serviceAccountName: 'system-upgrade',
      cordon: true,
      upgrade: { image: 'rancher/k3s-upgrade' },
      postCompleteLabels: { 'example.com/version': '$(LATEST_VERSION)' },
      ...own,
    },
  };
}

/** Reads the result from the Nodes and Jobs. */
async function summarize(
  client: KubeClient,
  views: readonly ShownPlan[],
  waits: readonly string[],
): Promise<string[]> {
  const { items } = await client.listAll(jobs, { namespace: NAMESPACE });
  const byNode = new Map(
    items.map((job) => [job.metadata.labels?.['upgrade.cattle.io/node'], job]),
  );
  const targets = views.flatMap(({ name: plan, stages }) =>
    stages.flatMap((stage) => stage.targets.map((target) => ({ ...target, plan }))),
  );
  const rows = await Promise.all(
    targets.map(async ({ name, phase, plan }) => {
      const { labels = {} } = (await client.get(nodes, name)).metadata;
      const job = byNode.get(name);
      return [
        name,
        labels['example.com/version'] ?? '',
        labels[`plan.upgrade.cattle.io/${plan}`]?.slice(0, 12) ?? '',
        phase,
        job?.metadata.name ?? '',
      ];
    }),
  );
  return [
    ...table(['NODE', 'VERSION', 'HASH', 'STATE', 'JOB'], rows),
    '',
    'Waits during the upgrade:',
    ...(waits.length > 0 ? waits.map((line) => `  ${line}`) : ['  none']),
  ];
}
