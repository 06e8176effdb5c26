/** Owns the way from objects to a Snapshot: what the API shows of each target, read once for one decision. */
import { cordonOwner, pendingOwner } from '../drain/cordon.ts';
import type { Outlook } from '../drain/outlook.ts';
import type { Condition, KubeObject, Node } from '../kube/types.ts';
import { ownerOf } from './cordons.ts';
import type { Dialect, World } from './dialect.ts';
import { isAlive } from './life.ts';
import type {
  Campaign,
  DrainView,
  EndpointHealth,
  NodeView,
  Observation,
  Snapshot,
  Stage,
  Target,
  TargetFacts,
} from './model.ts';
import { ordersOn } from './orders.ts';
import type { Reason } from './reasons.ts';
import type { Unanswered } from './unanswered.ts';
import type { WatchFacts } from './watch-times.ts';

/** What no watch shows: answers of this reconcile, and what this process itself does and has seen. All may be absent. */
export interface Known {
  readonly controlPlane?: readonly EndpointHealth[] | Unanswered | undefined;
  readonly preconditions?: readonly Reason[] | Unanswered | undefined;
  /** By node; without it nothing is looked at ahead of a drain. */
  readonly outlooks?: ReadonlyMap<string, Outlook | Unanswered> | undefined;
  /** Undefined where it was not asked. */
  readonly consentOf?: ((target: Target) => boolean | Unanswered | undefined) | undefined;
  /** True for whoever only looks: it takes for granted that targets let the leader drain, and asks nobody. */
  readonly isOnlyLooking?: boolean | undefined;
  /** By node, and by the words in which its cordon names its owner. */
  readonly drainOf?: ((node: string, owner: string) => DrainView | undefined) | undefined;
  readonly watch?: ((target: Target, observation: Observation) => WatchFacts) | undefined;
}

export function gather<P extends KubeObject>(
  dialect: Dialect<P>,
  plan: P,
  world: World,
  now: number,
  known: Known = {},
): Snapshot {
  const campaign = dialect.resolve(plan, world, now);
  const asks = dialect.preconditions !== undefined && known.isOnlyLooking !== true;
  const preconditions = known.preconditions ?? (asks ? 'unasked' : undefined);
  const facts = gatherFacts({ dialect, plan, campaign, world, known }, now);
  return { ...facts, orders: ordersOn(plan), preconditions };
}

/** A campaign, and where to look for what is to be seen of it. */
interface Scene<P extends KubeObject> {
  readonly dialect: Dialect<P>;
  readonly plan: P;
  readonly campaign: Campaign;
  readonly world: World;
  readonly known: Known;
}

/** What is seen of a campaign, whatever its plan says now. */
export function gatherFacts<P extends KubeObject>(scene: Scene<P>, now: number): Omit<Snapshot, 'orders'> {
  const { dialect, campaign, world, known } = scene;
  const facts = new Map<string, TargetFacts>();
  for (const stage of campaign.stages) {
    for (const target of stage.targets) {
      facts.set(target.key, factsOf(scene, stage, target));
    }
  }
  const others = (dialect.others?.(world, campaign) ?? []).filter(({ since }) => isAlive(since, now));
  const { controlPlane } = known;
  return {
    campaign,
    facts,
    controlPlane,
    others,
    fleet: dialect.fleet?.(world),
    apiServers: dialect.judgesVersions ? dialect.endpoints(world) : undefined,
    paceMs: paceOf(campaign, facts),
  };
}

function factsOf<P extends KubeObject>(scene: Scene<P>, stage: Stage, target: Target): TargetFacts {
  const { dialect, plan, world, campaign, known } = scene;
  const object = dialect.objectOf(stage, target, world);
  if (!object) return { exists: false, observation: { kind: 'none' } };
  const observation = dialect.signal.read(world, campaign, stage, target, plan);
  const ready = readyOf(object);
  return {
    exists: true,
    platform: platformOf(object),
    ready: ready && ready.status === 'True',
    readySince: ready?.lastTransitionTime,
    version: dialect.versionOf ? dialect.versionOf(object) : (object as Node).status?.nodeInfo?.kubeletVersion,
    ...careOf(scene, stage, target),
    ...known.watch?.(target, observation),
    observation,
  };
}

type CareFacts = Pick<TargetFacts, 'node' | 'consent' | 'outlook' | 'drain'>;

function careOf<P extends KubeObject>(scene: Scene<P>, stage: Stage, target: Target): CareFacts {
  const { dialect, world, campaign, known } = scene;
  const { care } = dialect;
  const { outlooks, consentOf, drainOf, isOnlyLooking } = known;
  if (!care) return { consent: false };
  const consent = care.always || isOnlyLooking ? true : (consentOf?.(target) ?? 'unasked');
  const node = care.nodeOf(stage, target, world);
  if (!node) return { consent };
  const { name } = node.metadata;
  const outlook = outlooks && (outlooks.get(name) ?? 'unasked');
  return { consent, node: viewOf(node), outlook, drain: drainOf?.(name, ownerOf(campaign, target)) };
}

function viewOf(node: Node): NodeView {
  return {
    name: node.metadata.name,
    unschedulable: node.spec?.unschedulable === true,
    cordonOwner: cordonOwner(node),
    taintOwner: pendingOwner(node),
  };
}

/** What nine in ten of those that are done took, as their agents measured it. */
function paceOf({ stages }: Campaign, facts: ReadonlyMap<string, TargetFacts>): number | undefined {
  const spent = stages
    .flatMap(({ targets }) => targets.filter(({ state }) => state === 'done'))
    .flatMap(({ key }) => spentBy(facts.get(key)?.observation) ?? [])
    .toSorted((a, b) => a - b);
  return spent[Math.ceil(spent.length * 0.9) - 1];
}

function spentBy(observation: Observation | undefined): number | undefined {
  if (!observation || observation.kind === 'none' || !observation.report?.spent) return undefined;
  return Object.values(observation.report.spent).reduce((sum, ms) => sum + ms, 0);
}

/** `<os>-<architecture>` from the well-known labels, undefined where one is missing. */
export function platformOf({ metadata: { labels = {} } }: KubeObject): string | undefined {
  const [os, architecture] = [labels['kubernetes.io/os'], labels['kubernetes.io/arch']];
  return os && architecture ? `${os}-${architecture}` : undefined;
}

function readyOf(object: KubeObject): Condition | undefined {
  return (object as Node).status?.conditions?.find(({ type }) => type === 'Ready');
}
