/** Owns the way from objects to a Snapshot: what the API shows of each target, read once for one decision. */
import type { Condition, KubeObject, Node } from '../kube/types.ts';
import type { Dialect, World } from './dialect.ts';
import type { Campaign, EndpointHealth, Snapshot, Stage, Target, TargetFacts } from './model.ts';
import { DEFAULT_POLICY } from './model.ts';

/**
 * Milliseconds after its last sign of life until a node no longer counts as at work for another campaign: some are left
 * in a state from which nothing leads on, and no plan could ever mend them if that held it back.
 */
const OTHERS_LIVE_MS = DEFAULT_POLICY.targetDeadlineMs;

export function gather<P extends KubeObject>(
  dialect: Dialect<P>,
  plan: P,
  world: World,
  now: number,
  controlPlane?: readonly EndpointHealth[],
): Snapshot {
  const campaign = dialect.resolve(plan, world, now);
  const facts = new Map<string, TargetFacts>();
  for (const stage of campaign.stages) {
    for (const target of stage.targets) {
      facts.set(target.key, factsOf(dialect, plan, world, campaign, stage, target));
    }
  }
  const others = (dialect.others?.(world, campaign) ?? []).filter(({ since }) => !isPast(since, now));
  return { campaign, facts, controlPlane, others };
}

/** A time that cannot be read is no reason to look away. */
function isPast(since: string, now: number): boolean {
  return now - Date.parse(since) >= OTHERS_LIVE_MS;
}

function factsOf<P extends KubeObject>(
  dialect: Dialect<P>,
  plan: P,
  world: World,
  campaign: Campaign,
  stage: Stage,
  target: Target,
): TargetFacts {
  const object = dialect.objectOf(stage, target, world);
  if (!object) return { exists: false, observation: { kind: 'none' } };
  const observation = dialect.signal.read(world, campaign, stage, target, plan);
  const ready = readyOf(object);
  return {
    exists: true,
    platform: platformOf(object),
    ready: ready && ready.status === 'True',
    readySince: ready?.lastTransitionTime,
    observation,
  };
}

/** `<os>-<architecture>` from the well-known labels, undefined where one is missing. */
export function platformOf({ metadata: { labels = {} } }: KubeObject): string | undefined {
  const [os, architecture] = [labels['kubernetes.io/os'], labels['kubernetes.io/arch']];
  return os && architecture ? `${os}-${architecture}` : undefined;
}

function readyOf(object: KubeObject): Condition | undefined {
  return (object as Node).status?.conditions?.find(({ type }) => type === 'Ready');
}
