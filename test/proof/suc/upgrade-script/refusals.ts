/** The scenes in which the script does not upgrade K3s: a downgrade, and an image whose program already runs. */
import { differing } from '../../checks.ts';
import type { Machine } from '../../machines/machine.ts';
import { until } from '../../wait.ts';
import { administer, type Scene } from '../scene.ts';
import { installedOn, nodeOf } from './install.ts';
import {
  AGENTS,
  apply,
  applyPlans,
  conditionOf,
  jobsOf,
  lacking,
  planOf,
  reaches,
  refit,
  saidBy,
} from './plans.ts';
import { EMPTY, IMAGE, NEWER, OLD, tagOf } from './programs.ts';
import { nodeWith } from './upgrades.ts';

const POLICY = 'proof';
const REFERENCE = `cattle/system-upgrade/${AGENTS}`;

async function underPolicy(scene: Scene, spec: object, work: () => Promise<void>): Promise<void> {
  await apply(scene, 'policy', {
    apiVersion: 'upgrade.refit.dev/v1alpha1',
    kind: 'UpgradePolicy',
    metadata: { name: POLICY },
    spec: { plans: [{ dialect: 'cattle', name: AGENTS }], ...spec },
  });
  await work();
  await administer(scene, 'delete', 'upgradepolicy', POLICY);
}

/** The image of a version contains the program that already runs, so the script ends well without an upgrade. */
export async function emptyImage(scene: Scene): Promise<void> {
  const { checks } = scene;
  const agent = agentOf(scene);
  const name = `docker.io/${IMAGE}`;
  await agent.must(`ctr -n k8s.io images tag ${name}:${tagOf(NEWER)} ${name}:${tagOf(EMPTY)}`);
  const before = await installedOn(agent);
  await underPolicy(scene, { deadlines: { ready: '1m' } }, async () => {
    await applyPlans(scene, { agents: EMPTY, waits: false });
    await checks.check('the Job succeeds without effect, and the Plan goes on', async () => {
      await until('the Job to succeed', 300, async () =>
        (await jobsOf(scene, AGENTS, EMPTY)).some(({ status }) => status.succeeded === 1),
      );
      const why = await refit(scene, 'why', agent.name);
      const logs = await refit(scene, 'logs', agent.name);
      const said = (await saidBy(scene, AGENTS, EMPTY, 'upgrade')).join('\n');
      const complete = conditionOf(await planOf(scene, AGENTS), 'Complete');
      return [
        ...lacking(said, 'Binary already been replaced'),
        // The kubelet gives the same lines to `refit logs`.
        ...lacking(logs.stdout, 'container upgrade', 'Binary already been replaced'),
        ...lacking(why.stdout, `its kubelet reports ${NEWER} instead of ${EMPTY}`),
        ...differing({ 'the condition Complete': complete?.status }, 'False'),
      ];
    });
    await checks.check('Refit says that the node does not run the version of its Job', async () => {
      const plan = await reaches(scene, AGENTS, EMPTY, 'VersionNotReached');
      const { stdout } = await refit(scene, 'status');
      const why = await refit(scene, 'why', agent.name);
      const message = conditionOf(plan, 'Complete')?.message ?? '';
      return [
        ...lacking(message, NEWER, EMPTY),
        ...lacking(stdout, `its kubelet reports ${NEWER} instead of ${EMPTY}`),
        ...lacking(why.stdout, `its kubelet reports ${NEWER} instead of ${EMPTY}`, 'refit retry'),
      ];
    });
    await checks.check('the host is as before, and takes pods', async () => {
      const { spec, status } = await nodeOf(scene, agent);
      return [
        ...differing({ 'the program': (await installedOn(agent)).hash }, before.hash),
        ...differing({ 'the kubelet': status.nodeInfo.kubeletVersion }, NEWER),
        ...differing({ 'the agent is cordoned': spec.unschedulable ?? false }, false),
      ];
    });
  });
  await backToWhatRuns(scene, agent);
}

/** Refit refuses a downgrade. If a policy allows it, the script refuses it. */
export async function refusedDowngrade(scene: Scene): Promise<void> {
  const { checks } = scene;
  const agent = agentOf(scene);
  const before = await installedOn(agent);
  await checks.check('`refit rollback` demands an image that can go back', async () => {
    const { ok, stdout, stderr } = await refit(scene, 'rollback', REFERENCE, '--reason', 'proof');
    return [
      ...differing({ 'the command succeeds': ok }, false),
      ...lacking(stdout + stderr, 'Use --image to name an image that installs an older version'),
    ];
  });
  await applyPlans(scene, { agents: OLD, waits: false });
  await checks.check('Refit starts no downgrade by itself', async () => {
    await until('Refit to refuse the downgrade', 120, async () =>
      (await refit(scene, 'why', agent.name)).stdout.includes('Downgrade'),
    );
    const why = await refit(scene, 'why', agent.name);
    return [
      ...lacking(why.stdout, NEWER, OLD),
      ...differing({ Jobs: (await jobsOf(scene, AGENTS, OLD)).length }, 0),
    ];
  });
  await underPolicy(scene, { versions: { allow: ['Downgrade'] } }, async () => {
    await checks.check('the script refuses the downgrade, and Refit says so', async () => {
      const plan = await reaches(scene, AGENTS, OLD, 'JobFailed');
      const said = (await saidBy(scene, AGENTS, OLD, 'upgrade')).join('\n');
      await refit(scene, 'status');
      const why = await refit(scene, 'why', agent.name);
      const logs = await refit(scene, 'logs', agent.name, '--tail', '50');
      const [job] = await jobsOf(scene, AGENTS, OLD);
      const name = job?.metadata.name ?? 'a Job';
      return [
        ...lacking(said, 'is higher than'),
        ...lacking(logs.stdout, 'is higher than'),
        ...lacking(conditionOf(plan, 'Complete')?.message ?? '', name),
        ...lacking(why.stdout, name),
      ];
    });
    await checks.check('the host is as before, and stays cordoned', async () => {
      const { spec, status } = await nodeOf(scene, agent);
      return [
        ...differing({ 'the program': (await installedOn(agent)).hash }, before.hash),
        ...differing({ 'the kubelet': status.nodeInfo.kubeletVersion }, NEWER),
        ...differing({ 'the agent is cordoned': spec.unschedulable ?? false }, true),
      ];
    });
  });
  await backToWhatRuns(scene, agent);
}

/** Gives the Plan the version that the node runs. */
async function backToWhatRuns(scene: Scene, agent: Machine): Promise<void> {
  await scene.checks.check('with the version that the node runs, the Plan completes', async () => {
    await applyPlans(scene, { agents: NEWER, waits: false });
    await reaches(scene, AGENTS, NEWER, 'Complete');
    return await nodeWith(scene, agent, NEWER, AGENTS);
  });
}

function agentOf({ cluster }: Scene): Machine {
  const [agent] = cluster.workers;
  if (agent === undefined) throw new Error('this scene needs an agent');
  return agent;
}
