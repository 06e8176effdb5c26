/** The scenes in which the script upgrades K3s: servers before agents, and an agent that waits for servers in vain. */
import { differing } from '../../checks.ts';
import type { Machine } from '../../machines/machine.ts';
import { administer, type Scene } from '../scene.ts';
import { installedOn, nodeOf } from './install.ts';
import {
  AGENTS,
  applyPlans,
  containerOf,
  jobsOf,
  lacking,
  type Pod,
  planOf,
  podsOf,
  reaches,
  refit,
  SERVERS,
  saidBy,
  says,
} from './plans.ts';
import { NEW, NEWER, tagOf } from './programs.ts';

/** Applies both Plans at once. */
export async function serversBeforeAgents(scene: Scene): Promise<void> {
  const { checks } = scene;
  await applyPlans(scene, { servers: NEW, agents: NEW });
  await checks.check('`prepare` of the agent waits for the servers', async () => {
    await says(scene, [AGENTS, NEW, 'prepare'], 'Waiting for all control-plane nodes');
    const { stdout } = await refit(scene, 'status');
    return lacking(stdout, SERVERS, AGENTS);
  });
  await checks.check('both Plans complete', async () => {
    for (const plan of [SERVERS, AGENTS]) await reaches(scene, plan, NEW, 'Complete');
    return [];
  });
  await checks.check('the servers are upgraded one at a time, and the agent after them', async () =>
    inTurn(await podsOf(scene, SERVERS, NEW), await podsOf(scene, AGENTS, NEW)),
  );
  await checks.check('the script has replaced K3s and ended its process', async () => {
    const said = [
      ...(await saidBy(scene, SERVERS, NEW, 'upgrade')),
      ...(await saidBy(scene, AGENTS, NEW, 'upgrade')),
    ];
    await saidBy(scene, AGENTS, NEW, 'prepare');
    return [
      ...differing({ 'the number of Jobs': said.length }, scene.cluster.machines.length),
      ...said.flatMap((text) =>
        lacking(text, 'K3s binary has been replaced successfully', 'Successfully killed old k3s'),
      ),
    ];
  });
  await done(scene, NEW);
}

/** The label with the value `disabled` excludes a Node from the Plan of the servers. */
const EXCLUDED = `plan.upgrade.cattle.io/${SERVERS}`;

/**
 * The Plan of the agents names a newer version than the Plan of the servers. Then the Plan of the servers names it, too,
 * but one server is excluded from it.
 */
export async function preparedInVain(scene: Scene): Promise<void> {
  const { cluster, checks } = scene;
  const [agent] = cluster.workers;
  if (agent === undefined) throw new Error('this scene needs an agent');
  await applyPlans(scene, { agents: NEWER });
  await checks.check('`prepare` waits for servers of a version that no Plan installs', async () => {
    await says(
      scene,
      [AGENTS, NEWER, 'prepare'],
      `Waiting for all control-plane nodes to be upgraded to version ${tagOf(NEWER)}`,
    );
    const { spec } = await nodeOf(scene, agent);
    const { version } = await installedOn(agent);
    return [
      ...differing({ 'K3s on the agent': version }, NEW),
      ...differing({ 'the agent is cordoned': spec.unschedulable ?? false }, false),
    ];
  });
  await checks.check('Refit says for which Plan and which version `prepare` waits', async () => {
    const words = `waits for Plan system-upgrade/${SERVERS} in spec.prepare, which has the version ${tagOf(NEW)} and not ${tagOf(NEWER)}`;
    const status = await refit(scene, 'status');
    const why = await refit(scene, 'why', agent.name);
    return [...lacking(status.stdout, words), ...lacking(why.stdout, words)];
  });
  const left = cluster.controlPlanes.at(-1)?.name ?? '';
  // The label holds the hash of the last upgrade.
  await administer(scene, 'label', '--overwrite', 'node', left, `${EXCLUDED}=disabled`);
  await applyPlans(scene, { servers: NEWER });
  await checks.check(
    'Refit names the server that its Plan leaves out, for which `prepare` waits',
    async () => {
      await reaches(scene, SERVERS, NEWER, 'Complete');
      const words = `waits for Plan system-upgrade/${SERVERS} in spec.prepare, which leaves ${left} (${NEW}) without ${NEWER}`;
      const status = await refit(scene, 'status');
      const { version } = await installedOn(agent);
      return [...lacking(status.stdout, words), ...differing({ 'K3s on the agent': version }, NEW)];
    },
  );
  await administer(scene, 'label', 'node', left, `${EXCLUDED}-`);
  await checks.check('both Plans complete when no server is excluded any more', async () => {
    for (const plan of [SERVERS, AGENTS]) await reaches(scene, plan, NEWER, 'Complete');
    return inTurn(await podsOf(scene, SERVERS, NEWER), await podsOf(scene, AGENTS, NEWER));
  });
  await done(scene, NEWER);
}

/** Checks all nodes at the end of an upgrade. */
async function done(scene: Scene, version: string): Promise<void> {
  const { cluster, checks } = scene;
  await checks.check(`all nodes run ${version}, once upgraded, and take pods`, async () => {
    const wrong: string[] = [];
    for (const machine of cluster.machines) {
      const isServer = cluster.controlPlanes.includes(machine);
      wrong.push(...(await nodeWith(scene, machine, version, isServer ? SERVERS : AGENTS)));
    }
    for (const plan of [SERVERS, AGENTS])
      for (const { metadata, status } of await jobsOf(scene, plan, version))
        wrong.push(
          ...differing({ [`${metadata.name} succeeded`]: status.succeeded }, 1),
          ...differing({ [`${metadata.name} failed`]: status.failed ?? 0 }, 0),
        );
    return wrong;
  });
}

/** Returns what is wrong with a node that a Plan has upgraded to the version. */
export async function nodeWith(
  scene: Scene,
  machine: Machine,
  version: string,
  plan: string,
): Promise<string[]> {
  const { metadata, spec, status } = await nodeOf(scene, machine);
  const { status: seen } = await planOf(scene, plan);
  const installed = await installedOn(machine);
  const { name } = machine;
  const label = metadata.labels[`plan.upgrade.cattle.io/${plan}`];
  return [
    ...differing({ [`K3s on ${name}`]: installed.version }, version),
    ...differing({ [`the kubelet of ${name}`]: status.nodeInfo.kubeletVersion }, version),
    ...differing({ [`${name} is cordoned`]: spec.unschedulable ?? false }, false),
    ...differing({ [`the label of ${name}`]: label }, seen?.latestHash),
  ];
}

/** Returns what is wrong with the order in which the pods worked. */
function inTurn(servers: readonly Pod[], agents: readonly Pod[]): string[] {
  const times = (pods: readonly Pod[], container: string) =>
    pods.map((pod) => containerOf(pod, container)?.state.terminated);
  const work = times(servers, 'upgrade').map((each) => ({
    begin: each?.startedAt ?? '',
    end: each?.finishedAt ?? '',
  }));
  const inOrder = work.toSorted((one, other) => one.begin.localeCompare(other.begin));
  const overlaps = inOrder.filter(({ begin }, index) => begin < (inOrder[index - 1]?.end ?? ''));
  const last = inOrder.at(-1)?.end ?? '';
  const prepared = times(agents, 'prepare').map((each) => each?.finishedAt ?? '');
  return [
    ...differing({ 'the number of servers': work.length }, 2),
    ...differing({ 'the number of agents': prepared.length }, 1),
    ...overlaps.map(({ begin }) => `a server started at ${begin}, before the end of another one`),
    ...prepared
      .filter((time) => time < last)
      .map((time) => `prepare ended at ${time}, before the last server at ${last}`),
  ];
}
