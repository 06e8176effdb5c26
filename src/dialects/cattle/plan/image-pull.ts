/**
 * Pulls the image of a Plan on a node before the node is cordoned. Kubernetes starts the main container of the Job of a Plan
 * only after its drain, so without this the node is unavailable while its kubelet pulls the image.
 */
import type { CattlePlan } from '../../../api/cattle/plan.ts';
import { cattlePlans } from '../../../api/kinds.ts';
import { PULL_LABEL } from '../../../drain/own-pods.ts';
import type { DownloadRequests } from '../../../engine/contract/signal.ts';
import type { Watched, World } from '../../../engine/contract/world.ts';
import type { RequiredDownload } from '../../../engine/model/downloads.ts';
import type { Rollout, Stage, Target } from '../../../engine/model/rollout.ts';
import { lackOfPods } from '../../../kube/podless-jobs.ts';
import { type Job, jobs, nodes, type Pod, pods, type Resource } from '../../../kube/resources.ts';
import { virtualBy } from '../../../kube/virtual-nodes.ts';
import { ownMember } from '../../../util/own-member.ts';
import { holds } from './conditions.ts';
import type { CattleConfig } from './config.ts';
import { installsKubernetes, isInstaller } from './installed-version.ts';
import { isWindows, withLatestTag } from './job.ts';
import { stallIn, stallOf, trimPod, waitsLong } from './pods.ts';
import { PULLED_IMAGE, PULLS_ON, type Pull, pullJobOf, pullNameOf } from './pull-job.ts';
import type { PullMemory } from './pull-memory.ts';

/** The Jobs that pull images. They have no label of the original, so they are watched apart from the Jobs of Plans. */
export const pullJobs: Resource<Job> = { ...jobs, part: 'image pulls' };
const pullPods: Resource<Pod> = { ...pods, part: 'image pulls' };

/** Returns the kinds that show how the pulls of one namespace go. */
export function watchedPulls(namespace?: string): readonly Watched[] {
  const scope = { labelSelector: PULL_LABEL, ...(namespace !== undefined && { namespace }) };
  return [
    {
      ...scope,
      resource: pullJobs,
      isRelevant: (before: Job, after: Job) =>
        before.metadata.uid !== after.metadata.uid || endOf(before) !== endOf(after),
    },
    {
      ...scope,
      resource: pullPods,
      fieldSelector: 'status.phase!=Running,status.phase!=Succeeded',
      // The rights of the original do not allow the controller to read pods. Then only the end of the Job tells the failure.
      optional: true,
      advisory: true,
      transform: trimPod,
      isRelevant: (before: Pod, after: Pod) => stallIn(before) !== stallIn(after),
      isNeeded: (world, now) =>
        world.list(pullJobs).some((job) => endOf(job) === undefined && waitsLong(job, now)),
    },
  ];
}

/**
 * Returns the requests to pull images. Read-only commands have no `memory`, so they know only what the present Jobs show.
 */
export function imagePulls(
  config: CattleConfig,
  memory: PullMemory | undefined,
): DownloadRequests<CattlePlan> {
  const { namespace } = config;
  return {
    requiredOf: (world, rollout, stage, target, plan) => {
      const pull = pullFor(config, { world, rollout, stage, target, plan });
      return pull && stateOf(pull, world, memory);
    },

    prefetch: (world, rollout, stage, target) => {
      const plan = world.get(cattlePlans, rollout.source.name, namespace);
      const pull =
        plan?.metadata.uid === rollout.source.uid
          ? pullFor(config, { world, rollout, stage, target, plan })
          : undefined;
      return pull && { kind: 'create', resource: pullJobs, object: pullJobOf(config, pull) };
    },

    end: (world, _stage, { name }, { source, id }) => {
      const job = world.get(pullJobs, pullNameOf(source.name, name, id), namespace);
      return job && { kind: 'delete', resource: pullJobs, object: job };
    },
  };
}

interface Question {
  readonly world: World;
  readonly rollout: Rollout;
  readonly stage: Stage;
  readonly target: Target;
  readonly plan: CattlePlan;
}

/**
 * Returns the pull that the target needs before it starts; undefined if it needs none. Only the known images end at once
 * with the arguments of the Job, and other images may do anything. A Windows node runs no such container.
 */
function pullFor(
  { installers }: CattleConfig,
  { world, rollout, stage, target, plan }: Question,
): Pull | undefined {
  const image = plan.spec?.upgrade?.image ?? '';
  if (target.state !== 'pending' || rollout.problems.length > 0) return undefined;
  if (!isInstaller(image, installers) || !installsKubernetes(plan, installers)) return undefined;
  const node = world.get(nodes, target.name);
  if (!node || isWindows(node) || virtualBy(node) !== undefined) return undefined;
  return { plan, node, hash: rollout.id, image: withLatestTag(image, stage.version) };
}

function stateOf(
  pull: Pull,
  world: World,
  memory: PullMemory | undefined,
): RequiredDownload | undefined {
  const { plan, node, hash } = pull;
  const { name, namespace, uid } = plan.metadata;
  const job = world.get(pullJobs, pullNameOf(name, node.metadata.name, hash), namespace);
  if (!job) {
    if (memory?.isDone(pull) === true) return { kind: 'done' };
    return memory && { kind: 'unasked' };
  }
  const isOurs = job.metadata.ownerReferences?.some((owner) => owner.uid === uid) === true;
  const pulled = ownMember(job.metadata.annotations, PULLED_IMAGE);
  if (!isOurs || pulled !== pull.image || machineOf(job) !== node.metadata.uid)
    return { kind: 'outdated' };
  if (holds(job, 'Complete')) {
    memory?.done(pull);
    return { kind: 'done' };
  }
  const failure = holds(job, 'Failed');
  if (failure) {
    const { reason = '', message = '', lastTransitionTime: since = '' } = failure;
    const words = memory?.wordsOf(pull);
    memory?.failed(pull);
    const why = `its Job ${job.metadata.namespace}/${job.metadata.name} failed: ${reason}: ${message}`;
    return { kind: 'failed', problem: words === undefined ? why : `${words}; ${why}`, since };
  }
  const lack = lackOfPods(job, plan.spec?.serviceAccountName);
  const problem = stallOf(job, world, pullPods) ?? (lack && `its Job ${lack}`);
  if (problem !== undefined) memory?.told(pull, problem);
  return { kind: 'asked', problem, isRetry: memory?.hasFailed(pull) === true };
}

/** Returns the uid of the Node for which the Job was made, because another machine may have the same name. */
function machineOf({ metadata }: Job): string | undefined {
  return ownMember(metadata.annotations, PULLS_ON);
}

function endOf(job: Job): string | undefined {
  return (holds(job, 'Complete') ?? holds(job, 'Failed'))?.type;
}
