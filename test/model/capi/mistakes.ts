/** Planted mistakes of leaders and of the hook of Cluster API's Machines, each with the invariant that it breaks. */
import { capi } from '../../../src/dialects/capi/plan/capi-dialect.ts';
import { sealed } from '../../../src/dialects/capi/plan/owner-controls.ts';
import type { Dialect } from '../../../src/engine/contract/dialect.ts';
import type { RecordSharding } from '../../../src/engine/contract/features.ts';
import { PAUSE_ANNOTATION } from '../../../src/engine/model/controls.ts';
import type { Observation } from '../../../src/engine/model/facts.ts';
import type { Stage, Target } from '../../../src/engine/model/rollout.ts';
import { type Node, nodes, withoutAnnotations } from '../../../src/kube/resources.ts';
import { EVERY_RUN_ENDS } from '../explorer.ts';
import { type CapiLeader, leaderWith, realCapiLeader } from './capi-leader.ts';
import { realRequesting } from './capi-moves.ts';
import type { CapiConfiguration } from './capi-objects.ts';
import { isRequested, openSignalOn, recordOn } from './capi-state.ts';
import type { CapiParts } from './capi-world.ts';
import { configureCapi } from './configurations.ts';

export interface CapiMistake {
  readonly name: string;
  readonly configuration: CapiConfiguration;
  readonly parts: CapiParts;
  readonly breaks: string;
}

type CapiDialect = Dialect<Node>;
type World = Parameters<CapiDialect['resolve']>[1];

/** Changes the only stage of each plan. */
function resolving(
  change: (stage: Stage, world: World) => Stage,
  more: Partial<CapiDialect> = {},
): CapiParts {
  const leader = leaderWith({
    ...capi,
    ...more,
    resolve: (plan, world, now) => {
      const rollout = capi.resolve(plan, world, now);
      const stages = rollout.stages.map((stage) => change(stage, world));
      return { ...rollout, stages };
    },
  });
  return { leader };
}

const reading = (change: (seen: Observation) => Observation): CapiParts => ({
  leader: leaderWith({
    ...capi,
    signal: { ...capi.signal, read: (...given) => change(capi.signal.read(...given)) },
  }),
});

function spreading(change: Partial<RecordSharding<Node>>): CapiParts {
  return { leader: leaderWith({ ...capi, sharding: { ...sharding(), ...change } }) };
}

function sharding(): RecordSharding<Node> {
  if (capi.sharding === undefined) throw new Error('the records are in one object');
  return capi.sharding;
}

/** Changes what the leader writes. `before` is the Node before the write. */
function writing(change: (after: Node, before: Node) => Node | undefined): CapiParts {
  const leader: CapiLeader = async (view, name) => {
    const deeds = await realCapiLeader(view, name);
    return deeds.flatMap((deed) => {
      if (deed.kind !== 'write' || !deed.object) return [deed];
      const before = view.current.get(deed.object.metadata.name) ?? deed.object;
      const object = change(deed.object, before);
      return object ? [{ ...deed, object }] : [];
    });
  };
  return { leader };
}

const isUnchosen = (world: World, { name }: Target): boolean =>
  world.list(nodes).some((node) => node.metadata.name === name && !isRequested(node));

/** Returns the stage as one whose targets nobody else chooses. */
function byHash(stage: Stage): Stage {
  const { chosenElsewhere: _, ...own } = stage;
  return own;
}

const byName = (a: Target, b: Target): number => (a.name < b.name ? -1 : 1);

const inTurn = configureCapi('a b', { maxUnavailable: 2, waves: 'in turn' });
const twoAtOnce = configureCapi('a b', { maxUnavailable: 2 });
const controllers = configureCapi('a b', { role: 'controller', maxUnavailable: 2 });

export const CAPI_MISTAKES: readonly CapiMistake[] = [
  {
    name: 'the leader takes Machines in the order of their names',
    configuration: inTurn,
    parts: resolving(({ targets, ...stage }) => ({ ...stage, targets: targets.toSorted(byName) })),
    breaks: 'waves-in-turn',
  },
  {
    name: 'the leader divides the Machines into waves by a hash',
    configuration: inTurn,
    parts: resolving(byHash),
    breaks: 'waves-in-turn',
  },
  {
    name: 'the leader records only the Machine that represents the plan',
    configuration: twoAtOnce,
    parts: spreading({ spread: (...given) => ({ ...sharding().spread(...given), ofTargets: [] }) }),
    breaks: EVERY_RUN_ENDS,
  },
  {
    name: 'the leader starts a Machine that Cluster API has not chosen',
    configuration: configureCapi('a b'),
    parts: resolving(
      ({ targets, ...stage }, world) => ({
        ...stage,
        targets: targets.map((target) =>
          isUnchosen(world, target) ? { ...target, state: 'intended' } : target,
        ),
      }),
      { nodeSharing: { occupantOf: () => undefined } },
    ),
    breaks: 'only-chosen-starts',
  },
  {
    name: 'the leader forgets the Machines that Cluster API has not chosen',
    configuration: configureCapi('a b'),
    parts: resolving(({ targets, ...stage }, world) => ({
      ...stage,
      targets: targets.filter((target) => !isUnchosen(world, target)),
    })),
    breaks: 'completed-is-done',
  },
  {
    name: 'the leader treats controllers as workers',
    configuration: controllers,
    parts: resolving((stage) => ({ ...stage, role: 'worker' }), {
      foreignWork: { list: () => [] },
    }),
    breaks: 'signals-within-slots',
  },
  {
    name: 'the leader sees no work of other plans',
    configuration: configureCapi('a b', { role: 'controller', hasOwner: false, maxUnavailable: 2 }),
    parts: { leader: leaderWith({ ...capi, foreignWork: { list: () => [] } }) },
    breaks: 'signals-within-slots',
  },
  {
    name: 'the leader copies no controls to the other Nodes',
    configuration: configureCapi('a b', { maxUnavailable: 2, moves: ['pause', 'delete'] }),
    parts: {
      leader: leaderWith({ ...capi, planObjects: { ...capi.planObjects, copies: () => [] } }),
    },
    breaks: 'paused-never-starts',
  },
  {
    name: 'the leader believes that Refit removed the pause, although the seal says otherwise',
    configuration: configureCapi('a b', { maxUnavailable: 2, moves: ['pause', 'meddle'] }),
    parts: {
      leader: leaderWith({
        ...capi,
        planObjects: { ...capi.planObjects, proved: (node) => node },
        resolve: (...given) => ({ ...capi.resolve(...given), unread: undefined }),
      }),
    },
    breaks: 'paused-never-starts',
  },
  {
    name: 'the hook writes a request without the controls of the plan',
    configuration: configureCapi('a b', { maxUnavailable: 2, moves: ['pause', 'delete'] }),
    parts: {
      requesting: (...given) => withoutPause(realRequesting(...given)),
    },
    breaks: 'paused-never-starts',
  },
  {
    name: 'the leader allows a failure for each Machine',
    configuration: configureCapi('a:bad b', { maxUnavailable: 2, waves: 'in turn' }),
    parts: { leader: leaderWith(capi, (policy) => ({ ...policy, maxFailures: 2 })) },
    breaks: 'failures-stop-starts',
  },
  {
    name: 'the leader starts a wave without waiting for the approval',
    configuration: configureCapi('a b', { maxUnavailable: 2, waves: 'approved' }),
    parts: {
      leader: leaderWith(capi, ({ waves = [], ...policy }) => ({
        ...policy,
        waves: waves.map((wave) => ({ ...wave, needsApproval: false })),
      })),
    },
    breaks: 'approved-before-start',
  },
  {
    name: 'the leader sends a signal before the Node records the intent',
    configuration: twoAtOnce,
    parts: writing((after) =>
      openSignalOn(after) === undefined && recordOn(after)?.state === 'intended'
        ? undefined
        : after,
    ),
    breaks: 'intent-before-signal',
  },
  {
    name: 'the leader sends its signal again while the agent works',
    configuration: twoAtOnce,
    parts: reading((seen) => (seen.kind === 'working' ? { kind: 'none' } : seen)),
    breaks: 'one-signal-per-attempt',
  },
  {
    name: 'the leader cordons the Node and does not drain it',
    configuration: configureCapi('a b'),
    parts: {
      leader: leaderWith(capi, (policy) => ({
        ...policy,
        drain: { ...policy.drain, cordonOnly: true },
      })),
    },
    breaks: 'drained-before-work',
  },
  {
    name: 'the leader treats a Node at work as upgraded',
    configuration: configureCapi('a b'),
    parts: reading((seen) => (seen.kind === 'working' ? { ...seen, kind: 'succeeded' } : seen)),
    breaks: 'done-runs-it',
  },
  {
    name: 'the leader removes every cordon from a Node that is done',
    configuration: configureCapi('a b', { moves: ['cordon'] }),
    parts: writing((after) =>
      recordOn(after)?.state === 'done'
        ? { ...after, spec: { ...after.spec, unschedulable: false } }
        : after,
    ),
    breaks: 'cordon-of-others-kept',
  },
  {
    name: 'the leader keeps the cordon of a Node that is done',
    configuration: configureCapi('a b'),
    parts: writing((after, before) => ({
      ...after,
      spec: { ...after.spec, ...(before.spec?.unschedulable === true && { unschedulable: true }) },
    })),
    breaks: 'no-cordon-left',
  },
];

function withoutPause(node: Node): Node {
  return sealed(withoutAnnotations(node, PAUSE_ANNOTATION), node);
}
