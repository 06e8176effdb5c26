/** A run of `refit kubeadm apply` as a model to explore: the ConfigMap, the Nodes, the hosts and the process. */
import { reportOn } from '../../../src/dialects/kubeadm/plan/kubeadm-signal.ts';
import type { ConfigMap, KubeObject, Node } from '../../../src/kube/resources.ts';
import { NOW } from '../cluster.ts';
import { type Carrying, edgesOfDeeds, withDrain, wordsForDeed } from '../deeds.ts';
import type { Edge, Invariant, Model } from '../explorer.ts';
import { once } from '../numbering.ts';
import { isClosed, ObjectStates, pastOf, remembering } from '../object-states.ts';
import { invariantsOf } from '../planted-world.ts';
import { reportFor, withReport } from './host-moves.ts';
import { KUBEADM_INVARIANTS } from './kubeadm-invariants.ts';
import { type KubeadmDeed, type KubeadmLeader, realKubeadmLeader } from './kubeadm-leader.ts';
import { changesIn, type KubeadmScene, runsAfter } from './kubeadm-moves.ts';
import {
  hasEnded,
  type KubeadmConfiguration,
  objectsOf,
  PLAN,
  runOf,
  targetsIn,
  versionAtFirst,
} from './kubeadm-objects.ts';
import {
  freshPast,
  type KubeadmGlance,
  type KubeadmState,
  type Procedure,
} from './kubeadm-state.ts';

export class KubeadmWorld implements Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  readonly invariantsAtRest: readonly Invariant[];
  readonly #configuration: KubeadmConfiguration;
  readonly #leader: KubeadmLeader;
  readonly #states = new ObjectStates<KubeadmState>();
  readonly #carrying: Carrying<KubeadmState, KubeadmDeed> = {
    after: (state, deed) => this.#afterDeed(state, deed),
    wordsFor,
    textOf: (state) => this.#states.textOf(state),
  };
  readonly #deeds = new Map<string, Promise<readonly KubeadmDeed[]>>();
  readonly #glances = new Map<string, KubeadmGlance>();

  constructor(configuration: KubeadmConfiguration, leader: KubeadmLeader = realKubeadmLeader) {
    this.#configuration = configuration;
    this.#leader = leader;
    const past = Object.keys(configuration.hosts).map((name) =>
      freshPast(name, versionAtFirst(configuration, name), configuration.renews.includes(name)),
    );
    this.initial = this.#states.textOf({
      objects: this.#states.contentsOf(objectsOf(configuration, past)),
      drains: {},
      procedures: {},
      begun: [],
      hookJobs: [],
      moves: configuration.moves,
      past,
    });
    const asked = invariantsOf(KUBEADM_INVARIANTS, (text) => this.#glance(text), configuration);
    this.invariants = asked.invariants;
    this.invariantsAtRest = asked.invariantsAtRest;
  }

  isFinal(text: string): boolean {
    return hasEnded(this.#glance(text).plan);
  }

  async next(text: string): Promise<Edge[]> {
    const state = this.#states.stateOf(text);
    const scene = this.#sceneOf(state);
    const deeds = await this.#deedsIn(scene);
    const changes = [...changesIn(scene), ...runsAfter(scene)];
    const edges = changes.map((change) => this.#states.edge(state, change));
    return [...edges, ...edgesOfDeeds(this.#carrying, state, deeds)].filter(
      ({ to }) => to !== text,
    );
  }

  #afterDeed(state: KubeadmState, deed: KubeadmDeed): KubeadmState {
    switch (deed.kind) {
      case 'drain': {
        const after = { ...state, drains: withDrain(state.drains, deed) };
        return deed.drain ? this.#closed(after, deed.node) : after;
      }
      case 'hook': {
        const { node, job } = deed;
        const rollout = runOf(this.#planIn(state));
        const hookJobs = [...state.hookJobs, { ...job, node, rollout }];
        const hooked = [...pastOf(state, node).hooked, this.#attemptOn(state, node)];
        return remembering({ ...state, hookJobs }, { name: node, hooked });
      }
      case 'write': {
        const { key, object } = deed;
        if (!object) throw new RangeError(`a leader deletes ${key}`);
        const after = this.#states.withObject(
          state,
          key,
          this.#withPresentReport(state, key, object),
        );
        const isCordon = isClosed(object) && !isClosed(this.#states.objectOf(state, key));
        return isCordon ? this.#closed(after, object.metadata.name) : after;
      }
      case 'begin':
        return begunWith(state, deed.key, deed.procedure);
      case 'acknowledge':
        return withProcedure(state, deed.key, (procedure) => ({ ...procedure, doing: 'drained' }));
      case 'stop': {
        const { key, node } = deed;
        const procedure = state.procedures[key];
        const object: Node = this.#states.objectOf(state, `nodes/${node}`);
        if (!procedure) throw new RangeError(`nothing works for ${key}`);
        const failed = { step: '', state: 'failed', message: 'it was stopped' } as const;
        const report = reportFor({ key, procedure, node: object }, failed, NOW);
        const told = this.#states.withObject(state, `nodes/${node}`, withReport(object, report));
        return withProcedure(told, key, (each) => ({ ...each, doing: 'ended' }));
      }
    }
  }

  /**
   * Returns the object with the report that its Node has now. Leaders never write reports, and the API server refuses the
   * write of a Node with a newer report, after which the leader decides again.
   */
  #withPresentReport(state: KubeadmState, key: string, object: KubeObject): KubeObject {
    if (!key.startsWith('nodes/')) return object;
    const report = reportOn(this.#states.objectOf(state, key));
    return report === undefined ? object : withReport(object, report);
  }

  /** The node is cordoned, or its drain begins. The Job of its hook must have succeeded before. */
  #closed(state: KubeadmState, name: string): KubeadmState {
    if (!this.#configuration.hasHook) return state;
    const rollout = runOf(this.#planIn(state));
    const isHooked = state.hookJobs.some(
      (job) => job.node === name && job.rollout === rollout && job.state === 'succeeded',
    );
    return isHooked ? state : remembering(state, { name, closedUnhooked: true });
  }

  async #deedsIn(scene: KubeadmScene): Promise<readonly KubeadmDeed[]> {
    const { configuration, state, objects, now } = scene;
    const { drains, hookJobs, procedures } = state;
    const key = JSON.stringify([state.objects, drains, hookJobs, procedures]);
    return await once(
      this.#deeds,
      key,
      async () =>
        await this.#leader({
          configuration,
          now,
          objects,
          drains: new Map(Object.entries(drains)),
          procedures: new Map(Object.entries(procedures)),
          hookJobs,
        }),
    );
  }

  #sceneOf(state: KubeadmState): KubeadmScene {
    const objects = this.#states.objectsIn(state.objects);
    const plan = this.#planIn(state);
    return { configuration: this.#configuration, state, plan, objects, now: NOW };
  }

  #planIn(state: KubeadmState): ConfigMap {
    return this.#states.objectOf(state, PLAN);
  }

  /** Returns the recorded attempt on the host. */
  #attemptOn(state: KubeadmState, name: string): string {
    const plan = this.#planIn(state);
    const target = targetsIn(plan).find((each) => each.name === name && each.state === 'intended');
    return `${runOf(plan)} ${target?.key} ${target?.since}`;
  }

  #glance(text: string): KubeadmGlance {
    return once(this.#glances, text, () => {
      const state = this.#states.stateOf(text);
      const { procedures, begun, past } = state;
      const nodes = past.map(({ name }): [string, Node] => [
        name,
        this.#states.objectOf(state, `nodes/${name}`),
      ]);
      return { plan: this.#planIn(state), nodes: new Map(nodes), procedures, begun, past };
    });
  }
}

function withProcedure(
  state: KubeadmState,
  key: string,
  change: (procedure: Procedure) => Procedure,
): KubeadmState {
  const procedure = state.procedures[key];
  if (!procedure) throw new RangeError(`nothing works for ${key}`);
  return { ...state, procedures: { ...state.procedures, [key]: change(procedure) } };
}

function begunWith(state: KubeadmState, key: string, procedure: Procedure): KubeadmState {
  const { node, rollout, attempt } = procedure;
  const begun = [...state.begun, `${key} ${attempt}`];
  const procedures = { ...state.procedures, [key]: procedure };
  const after = { ...state, begun, procedures };
  const isFinished = pastOf(state, node).finished.includes(`${rollout} ${key}`);
  return isFinished ? remembering(after, { name: node, begunAgain: true }) : after;
}

function wordsFor(deed: KubeadmDeed): string {
  switch (deed.kind) {
    case 'hook':
      return `creates the Job of the hook of ${deed.node}`;
    case 'begin':
      return `begins the work on ${deed.procedure.node}`;
    case 'acknowledge':
      return `tells ${deed.node} that it is drained`;
    case 'stop':
      return `stops the work on ${deed.node}`;
    case 'drain':
    case 'write':
      return wordsForDeed(deed);
  }
}
