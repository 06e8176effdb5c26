/** What happens in an exploration of Cluster API without a leader: Cluster API, agents, drains and people. */
import {
  leftIn,
  rolloutFor,
  withOwnedRequest,
} from '../../../src/dialects/capi/plan/machine-owners.ts';
import {
  type MachineUpdate,
  UPDATE_ANNOTATION,
  withRequest,
} from '../../../src/dialects/capi/plan/machine-update.ts';
import { areControlsSealed, sealed } from '../../../src/dialects/capi/plan/owner-controls.ts';
import {
  PAUSE_ANNOTATION,
  RETRY_ANNOTATION,
  withoutControls,
  withRetry,
} from '../../../src/engine/model/controls.ts';
import {
  annotated,
  kubeletVersionOf,
  type Node,
  withoutAnnotations,
} from '../../../src/kube/resources.ts';
import { decodeSignal, encodeReport, encodeSignal } from '../../../src/signal/annotations.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { withKubelet } from '../../support/builders/nodes.ts';
import { drainChanges, pastOf } from '../object-states.ts';
import {
  type CapiConfiguration,
  type CapiMove,
  machineKeyOf,
  NEW_VERSION,
  OLD_VERSION,
  ownerOf,
} from './capi-objects.ts';
import {
  type CapiState,
  chosenAmong,
  isRequested,
  type MachinePast,
  openSignalOn,
  plansAmong,
  recordOn,
} from './capi-state.ts';

/** A change of the cluster. Members that are not given stay as they are. */
export interface CapiChange {
  readonly label: string;
  readonly fair: boolean;
  /** The Node that changes. */
  readonly node?: Node;
  /** The name of the Node that is deleted. */
  readonly deleted?: string;
  readonly state?: Partial<CapiState>;
  /** What the model remembers of this Machine afterwards. */
  readonly past?: Partial<MachinePast> & Pick<MachinePast, 'name'>;
}

export interface CapiScene {
  readonly configuration: CapiConfiguration;
  readonly state: CapiState;
  readonly nodes: ReadonlyMap<string, Node>;
  readonly now: number;
}

/** Returns the Node with the request of Cluster API. */
export type Requesting = (scene: CapiScene, node: Node, update: MachineUpdate) => Node;

export function changesIn(scene: CapiScene, requesting: Requesting): CapiChange[] {
  const { state, nodes } = scene;
  return [
    ...choices(scene, requesting),
    ...[...nodes.values()].flatMap((node) => agentChanges(scene, node)),
    ...drainChanges(state),
    ...(state.seen === undefined
      ? []
      : [{ label: 'the watch shows all changes', fair: true, state: { seen: undefined } }]),
    ...state.moves.flatMap((move) =>
      MOVES[move](
        scene,
        state.moves.filter((each) => each !== move),
      ),
    ),
    ...resumptions(scene),
  ];
}

/** Returns true if UpdateMachine has told Cluster API that the update is done. */
const isOver = (node: Node): boolean =>
  recordOn(node)?.state === 'done' && kubeletVersionOf(node) === NEW_VERSION;

/** Cluster API chooses any Machine, as long as few are updated. It also asks again for a Machine whose request is gone. */
function choices(scene: CapiScene, requesting: Requesting): CapiChange[] {
  const { configuration, state, nodes } = scene;
  const busy = [...nodes.values()].filter(
    (node) => pastOf(state, node.metadata.name).isChosen && !isOver(node),
  );
  const hasRoom = busy.length < configuration.maxUnavailable;
  return [...nodes.values()].flatMap((node): CapiChange[] => {
    const { name } = node.metadata;
    if (isRequested(node) || !(hasRoom || busy.includes(node))) return [];
    const requests = state.requests + 1;
    return [
      {
        label: `Cluster API asks to update ${name}`,
        fair: true,
        node: requesting(scene, node, requestFor(scene, name)),
        state: { requests },
        past: { name, isChosen: true },
      },
    ];
  });
}

function requestFor({ configuration, state, now }: CapiScene, name: string): MachineUpdate {
  return {
    uid: `${name}-${state.requests}`,
    machine: machineKeyOf(name),
    version: NEW_VERSION,
    role: configuration.role,
    requested: new Date(now + state.requests).toISOString(),
    platform: 'linux-amd64',
    url: 'https://example.com/k0s',
    rules: { drainSeconds: 0 },
  };
}

/** Writes the request as the hook UpdateMachine does. */
export const realRequesting: Requesting = ({ configuration, nodes }, node, update) => {
  if (!configuration.hasOwner) return withRequest(withoutControls(node), update);
  const all = [...nodes.values()];
  const owner = ownerOf(configuration);
  const rollout = rolloutFor(all, owner, update.version);
  const left = leftIn(all, rollout) ?? [...nodes.keys()];
  return withOwnedRequest(node, update, owner, rollout, left);
};

/** The agent of a `bad` Node may fail before it touches the Node, and after that. */
function agentChanges({ configuration, now }: CapiScene, node: Node): CapiChange[] {
  const { name } = node.metadata;
  const signal = openSignalOn(node);
  const mayFail = configuration.nodes[name] === 'bad';
  if (signal === undefined) return [];
  const reporting = (status: string, after = node): CapiChange => ({
    label: `the agent of ${name} reports ${status}`,
    fair: true,
    node: annotated(after, {
      ...encodeSignal({ ...signal, status: { status, timestamp: rfc3339(now) } }),
      ...encodeReport({ created: signal.created, from: OLD_VERSION }),
    }),
  });
  if (signal.status === undefined)
    return [reporting('Cordoning'), ...(mayFail ? [reporting('FailedDownload')] : [])];
  if (signal.status.status !== 'ApplyingUpdate') return [];
  const upgraded = withKubelet(node, NEW_VERSION);
  return [reporting('UnCordoning', upgraded), ...(mayFail ? [reporting('Failed')] : [])];
}

/** Returns what the state becomes if another Node represents the plan, or none does, because this one does not any more. */
export function withoutLead({ pause }: CapiState, after: readonly Node[]): Partial<CapiState> {
  const [lead] = plansAmong(after);
  const isKept = lead !== undefined && (pause === 'kept' || isStopped(lead));
  return { pause: isKept ? pause : 'none' };
}

const isPaused = ({ metadata: { annotations } }: Node): boolean =>
  annotations?.[PAUSE_ANNOTATION] !== undefined;

/** Returns true if the plan is paused, or if somebody else has changed what controls it. */
const isStopped = (lead: Node): boolean => isPaused(lead) || !areControlsSealed(lead);

/** Somebody who has paused the plan resumes it. */
function resumptions({ nodes }: CapiScene): CapiChange[] {
  return plansAmong(nodes.values())
    .filter(isStopped)
    .map((lead): CapiChange => {
      const node = sealed(withoutAnnotations(lead, PAUSE_ANNOTATION), lead);
      return { label: 'a person resumes the plan', fair: true, node, state: { pause: 'none' } };
    });
}

type Moves = Readonly<
  Record<CapiMove, (scene: CapiScene, moves: CapiState['moves']) => CapiChange[]>
>;

const MOVES: Moves = {
  pause: ({ nodes, now }, moves) =>
    plansAmong(nodes.values())
      .filter((lead) => !isPaused(lead))
      .map((lead) => ({
        label: 'a person pauses the plan',
        fair: false,
        node: sealed(annotated(lead, { [PAUSE_ANNOTATION]: rfc3339(now) }), lead),
        state: { moves, pause: 'said' },
      })),

  meddle: ({ nodes }, moves) =>
    plansAmong(nodes.values())
      .filter(isPaused)
      .map((lead) => ({
        label: `the kubelet of ${lead.metadata.name} removes the pause`,
        fair: false,
        node: withoutAnnotations(lead, PAUSE_ANNOTATION),
        state: { moves },
      })),

  // A retry names a moment after the failure, so the clock must be able to pass it.
  retry: ({ nodes, state: { time } }, moves) =>
    plansAmong(time === 0 ? nodes.values() : []).flatMap((lead) =>
      chosenAmong(nodes.values()).flatMap((node): CapiChange[] => {
        const record = recordOn(node);
        if (record?.state !== 'failed') return [];
        const { name } = node.metadata;
        const { created = record.since } = decodeSignal(node.metadata.annotations) ?? {};
        const at = rfc3339(Math.max(Date.parse(record.since), Date.parse(created)));
        const known = lead.metadata.annotations?.[RETRY_ANNOTATION];
        const retries = { [RETRY_ANNOTATION]: withRetry(known, name, at) };
        const retried = sealed(annotated(lead, retries), lead);
        return [
          { label: `a person retries ${name}`, fair: false, node: retried, state: { moves } },
        ];
      }),
    ),

  again: ({ nodes, state }, moves) =>
    chosenAmong(nodes.values()).flatMap((node): CapiChange[] => {
      if (recordOn(node)?.state !== 'failed') return [];
      const { name } = node.metadata;
      const freed = withoutAnnotations(node, UPDATE_ANNOTATION);
      const after = [...nodes.values()].map((each) => (each === node ? freed : each));
      const label = `a person removes the failed request of ${name}`;
      const lost = withoutLead(state, after);
      return [{ label, fair: false, node: freed, state: { moves, ...lost } }];
    }),

  approve: (_scene, moves) => [
    { label: 'a person approves the second wave', fair: true, state: { moves, isApproved: true } },
  ],

  delete: ({ nodes, state }, moves) =>
    plansAmong(nodes.values()).map((lead) => {
      const { name } = lead.metadata;
      const after = [...nodes.values()].filter((node) => node !== lead);
      const isKnown = after.some((node) =>
        recordOn(node)?.failed?.some((each) => each.name === name),
      );
      const isLost = recordOn(lead)?.state === 'failed' && isKnown;
      // A leader records that a Machine is done on the Node of the next Machine first.
      const isDone =
        after.some((node) => recordOn(node)?.before !== undefined) ||
        (recordOn(lead)?.state === 'done' && after.some(isRequested));
      const { [name]: _, ...drains } = state.drains;
      return {
        label: `Cluster API deletes the Machine of ${name}`,
        fair: false,
        deleted: name,
        state: {
          moves,
          ...withoutLead(state, after),
          drains,
          gone: isLost ? [...state.gone, name] : state.gone,
          isFirstGone: state.isFirstGone || isDone,
        },
      };
    }),

  cordon: ({ nodes }, moves) =>
    [...nodes.values()].flatMap((node): CapiChange[] => {
      const { name } = node.metadata;
      if (node.spec?.unschedulable === true) return [];
      return [
        {
          label: `a person cordons ${name}`,
          fair: false,
          node: { ...node, spec: { ...node.spec, unschedulable: true } },
          state: { moves },
          past: { name, keptClosed: true },
        },
      ];
    }),

  hour: ({ state: { time } }, moves) => [
    { label: 'an hour passes', fair: true, state: { moves, time: time + 1 } },
  ],

  restart: (_scene, moves) => [
    { label: 'the leader restarts', fair: false, state: { moves, drains: {} } },
  ],

  lag: ({ state }, moves) => [
    {
      label: 'the watch shows no changes any more',
      fair: false,
      state: { moves, seen: { nodes: state.objects, changed: [] } },
    },
  ],
};
