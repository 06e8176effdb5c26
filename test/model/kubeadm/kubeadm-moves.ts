/** What happens in an exploration of `refit kubeadm apply` without a leader: drains, Jobs of hooks, hosts and people. */
import { ABORT_ANNOTATION, PAUSE_ANNOTATION } from '../../../src/engine/model/controls.ts';
import {
  annotated,
  type ConfigMap,
  type KubeObject,
  type Node,
  withoutAnnotations,
} from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { drainChanges, type ObjectChange } from '../object-states.ts';
import { scriptChanges, stepsOf } from './host-moves.ts';
import {
  hasEnded,
  type KubeadmConfiguration,
  type KubeadmMove,
  nextPlan,
  PLAN,
} from './kubeadm-objects.ts';
import { entryOf, type HostPast, type KubeadmState } from './kubeadm-state.ts';

export type KubeadmChange = ObjectChange<KubeadmState>;

export interface KubeadmScene {
  readonly configuration: KubeadmConfiguration;
  readonly state: KubeadmState;
  readonly plan: ConfigMap;
  readonly objects: ReadonlyMap<string, KubeObject>;
  readonly now: number;
}

export function changesIn(scene: KubeadmScene): KubeadmChange[] {
  const { state } = scene;
  return [
    ...Object.keys(state.procedures).flatMap((key) => stepsOf(scene, key)),
    ...scriptChanges(scene),
    ...drainChanges(state),
    ...state.hookJobs.flatMap((job, at): KubeadmChange[] => {
      if (job.state !== 'running') return [];
      const hookJobs = state.hookJobs.with(at, { ...job, state: 'succeeded' });
      const label = `the Job of the hook of ${job.node} succeeds`;
      return [{ label, fair: true, state: { hookJobs } }];
    }),
    ...state.moves.flatMap((move) =>
      MOVES[move](
        scene,
        state.moves.filter((each) => each !== move),
      ),
    ),
  ];
}

/**
 * Returns the next runs that a person can begin. Call it only if nothing is left for the leader to do: the command ends
 * after its leader has removed its cordons from the hosts that were not changed.
 */
export function runsAfter(scene: KubeadmScene): KubeadmChange[] {
  const { configuration, state, plan } = scene;
  if (!hasEnded(plan)) return [];
  return state.moves.flatMap((move): KubeadmChange[] => {
    if (move !== 'again' && move !== 'back') return [];
    const goesBack = move === 'back' || configuration.kind === 'way back';
    const next = nextPlan(configuration, plan, { past: state.past, goesBack });
    if (!next) return [];
    const label = `a person runs refit kubeadm apply ${goesBack ? '--back ' : ''}again`;
    const moves = state.moves.filter((each) => each !== move);
    const objects = new Map([[PLAN, next]]);
    return [{ label, fair: false, objects, state: { ...NEW_PROCESS, moves } }];
  });
}

/** What a new process remembers. */
const NEW_PROCESS = { drains: {}, procedures: {}, begun: [] } as const;

type Moves = Readonly<
  Record<KubeadmMove, (scene: KubeadmScene, moves: KubeadmState['moves']) => KubeadmChange[]>
>;

const MOVES: Moves = {
  pause: ({ plan, now }, moves) => {
    if (plan.metadata.annotations?.[PAUSE_ANNOTATION] === undefined) {
      const paused = annotated(plan, { [PAUSE_ANNOTATION]: rfc3339(now) });
      const objects = new Map([[PLAN, paused]]);
      return [{ label: 'a person pauses the run', fair: false, objects }];
    }
    const objects = new Map([[PLAN, withoutAnnotations(plan, PAUSE_ANNOTATION)]]);
    return [{ label: 'a person resumes the run', fair: true, objects, state: { moves } }];
  },

  abort: ({ plan }, moves) => {
    const objects = new Map([[PLAN, annotated(plan, { [ABORT_ANNOTATION]: 'stop' })]]);
    return [{ label: 'a person aborts the run', fair: false, objects, state: { moves } }];
  },

  cordon: ({ state, objects }, moves) =>
    state.past.flatMap(({ name }): KubeadmChange[] => {
      const key = `nodes/${name}`;
      const node: Node | undefined = objects.get(key);
      if (!node || node.spec?.unschedulable === true) return [];
      const cordoned: Node = { ...node, spec: { ...node.spec, unschedulable: true } };
      return [
        {
          label: `a person cordons ${name}`,
          fair: false,
          objects: new Map([[key, cordoned]]),
          state: { moves },
          past: { name, keptClosed: true },
        },
      ];
    }),

  // After the end of a run, the same command begins another run.
  restart: ({ plan, state }, moves) => {
    if (hasEnded(plan)) return [];
    const killed = { ...NEW_PROCESS, moves };
    const detached = withDetachedScripts(state);
    return [
      { label: 'the command is killed, and runs again', fair: false, state: killed },
      ...(detached === state.past
        ? []
        : [
            {
              label: 'the command is killed, and runs again, while the script on its host goes on',
              fair: false,
              state: { ...killed, past: detached },
            },
          ]),
    ];
  },

  again: () => [],
  back: () => [],
};

/** A script that runs when its process is killed goes on. */
function withDetachedScripts({ past, procedures }: KubeadmState): readonly HostPast[] {
  let after = past;
  for (const { node, doing, parts, rollout } of Object.values(procedures)) {
    const part = parts.find((each) => each === doing);
    if (!part) continue;
    after = after.map((each) =>
      each.name === node ? { ...each, detached: entryOf(rollout, part) } : each,
    );
  }
  return after;
}
