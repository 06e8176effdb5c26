/** A Plan of Rancher as a model to explore: the Plan, its Nodes and Jobs, the drains of the leader, and the Jobs of hooks. */
import type { CattlePlan } from '../../../src/api/cattle/plan.ts';
import { conditionOf } from '../../../src/dialects/cattle/plan/conditions.ts';
import { hashOn } from '../../../src/dialects/cattle/plan/names.ts';
import type { Job, KubeObject, Node } from '../../../src/kube/resources.ts';
import { rfc3339 } from '../../../src/util/clock.ts';
import { type Carrying, edgesOfDeeds, withDrain, wordsForDeed } from '../deeds.ts';
import type { Edge, Invariant, Model } from '../explorer.ts';
import { once } from '../numbering.ts';
import { ObjectStates, pastOf, remembering } from '../object-states.ts';
import { invariantsOf } from '../planted-world.ts';
import { CATTLE_INVARIANTS } from './cattle-invariants.ts';
import { type CattleDeed, type CattleLeader, realCattleLeader } from './cattle-leader.ts';
import { type CattleScene, changesIn, deletionsIn } from './cattle-moves.ts';
import { type CattleConfiguration, objectsOf, TIMES } from './cattle-objects.ts';
import {
  attemptOf,
  type CattleGlance,
  type CattleState,
  freshPast,
  isAtWork,
  momentOf,
  nodeOfJob,
  versionOf,
} from './cattle-state.ts';

export class CattleWorld implements Model {
  readonly initial: string;
  readonly invariants: readonly Invariant[];
  readonly invariantsAtRest: readonly Invariant[];
  readonly #configuration: CattleConfiguration;
  readonly #leader: CattleLeader;
  readonly #states = new ObjectStates<CattleState>();
  readonly #carrying: Carrying<CattleState, CattleDeed> = {
    after: (state, deed) => this.#afterDeed(state, deed),
    wordsFor,
    textOf: (state) => this.#states.textOf(state),
  };
  readonly #deeds = new Map<string, Promise<readonly CattleDeed[]>>();
  readonly #glances = new Map<string, CattleGlance>();

  constructor(configuration: CattleConfiguration, leader: CattleLeader = realCattleLeader) {
    this.#configuration = configuration;
    this.#leader = leader;
    this.initial = this.#states.textOf({
      time: 0,
      objects: this.#states.contentsOf(objectsOf(configuration)),
      drains: {},
      hookJobs: [],
      moves: configuration.moves,
      past: Object.keys(configuration.nodes).map(freshPast),
    });
    const asked = invariantsOf(CATTLE_INVARIANTS, (text) => this.#glance(text), configuration);
    this.invariants = asked.invariants;
    this.invariantsAtRest = asked.invariantsAtRest;
  }

  /** Reports whether the Plan is complete, was aborted, or waits because failed nodes keep all slots. */
  isFinal(text: string): boolean {
    const { plan, nodes } = this.#glance(text);
    const { latestHash, applying = [] } = plan.status ?? {};
    const isDone = [...nodes.values()].every((node) => hashOn(node, plan) === latestHash);
    if (conditionOf(plan, 'Complete')?.status === 'True') return isDone;
    if (conditionOf(plan, 'RefitAborted') !== undefined) return true;
    const failed = conditionOf(plan, 'RefitFailedNodes') === undefined ? [] : applying;
    return failed.length > 0 && failed.length <= this.#configuration.concurrency;
  }

  async next(text: string): Promise<Edge[]> {
    const state = this.#states.stateOf(text);
    const scene = this.#sceneOf(state);
    const deeds = await this.#deedsIn(scene);
    const edges = changesIn(scene).map((change) => this.#states.edge(state, change));
    // Kubernetes waits so long that a leader has looked at the Job since, unless no process leads all that time.
    if (deeds.length === 0)
      edges.push(...deletionsIn(scene).map((change) => this.#states.edge(state, change)));
    return [...edges, ...edgesOfDeeds(this.#carrying, state, deeds)].filter(
      ({ to }) => to !== text,
    );
  }

  #afterDeed(state: CattleState, deed: CattleDeed): CattleState {
    switch (deed.kind) {
      case 'drain':
        return { ...state, drains: withDrain(state.drains, deed) };
      case 'hook': {
        const { node, job } = deed;
        const hookJobs = [...state.hookJobs, job];
        const { hooked } = pastOf(state, node);
        const past = { name: node, hooked: [...hooked, this.#attemptOn(state, node)] };
        return remembering({ ...state, hookJobs }, past);
      }
      case 'write':
        return this.#afterWrite(state, deed.key, deed.object);
    }
  }

  #afterWrite(state: CattleState, key: string, object: KubeObject | undefined): CattleState {
    const before = state.objects[key];
    const after = this.#states.withObject(
      state,
      key,
      object && started(object, key, this.#nowIn(state)),
    );
    if (!object || !key.startsWith('jobs/')) return after;
    const name = nodeOfJob(object);
    const past = pastOf(state, name);
    const node: Node = this.#states.objectOf(state, `nodes/${name}`);
    const attempt = this.#attemptOn(state, name);
    const begins = isAtWork(object) && this.#configuration.drains === 'the leader';
    const isDrained = past.isEmpty && node.spec?.unschedulable === true;
    const isHooked = state.hookJobs.some(
      (job) => job.attempt === momentOf(attempt) && job.state === 'succeeded',
    );
    const isNew = before === undefined;
    return remembering(after, {
      name,
      ...(isNew && { installed: [...past.installed, versionOf(attempt)] }),
      ...(begins && !isDrained && { startedUndrained: true }),
      ...(isNew && this.#configuration.hasHook && !isHooked && { startedUnhooked: true }),
    });
  }

  async #deedsIn(scene: CattleScene): Promise<readonly CattleDeed[]> {
    const { configuration, state, objects, now } = scene;
    const { drains, hookJobs } = state;
    const key = JSON.stringify([state.time, state.objects, drains, hookJobs]);
    return await once(
      this.#deeds,
      key,
      async () =>
        await this.#leader({
          configuration,
          now,
          objects,
          drains: new Map(Object.entries(drains)),
          hookJobs,
        }),
    );
  }

  #sceneOf(state: CattleState): CattleScene {
    const objects = this.#states.objectsIn(state.objects);
    return { configuration: this.#configuration, state, objects, now: this.#nowIn(state) };
  }

  #attemptOn(state: CattleState, name: string): string {
    const plan = this.#states.objectOf(state, 'plans/plan') as CattlePlan;
    return attemptOf(this.#states.objectOf(state, `nodes/${name}`), plan);
  }

  #nowIn({ time }: CattleState): number {
    return TIMES[time] ?? 0;
  }

  #glance(text: string): CattleGlance {
    return once(this.#glances, text, () => this.#glanceAt(this.#states.stateOf(text)));
  }

  #glanceAt(state: CattleState): CattleGlance {
    const { objects } = this.#sceneOf(state);
    const jobs = [...objects].flatMap(([key, each]) => (key.startsWith('jobs/') ? each : []));
    const nodes = state.past.map(({ name }): [string, Node] => [
      name,
      this.#states.objectOf(state, `nodes/${name}`),
    ]);
    const plan = this.#states.objectOf(state, 'plans/plan') as CattlePlan;
    return { plan, jobs, nodes: new Map(nodes), past: state.past };
  }
}

/** Kubernetes starts a Job as soon as it is not suspended. */
function started(object: KubeObject, key: string, now: number): KubeObject {
  const job: Job = object;
  if (!key.startsWith('jobs/') || job.status !== undefined || !isAtWork(job)) return object;
  return { ...job, status: { startTime: rfc3339(now), active: 1 } } as Job;
}

function wordsFor(deed: CattleDeed): string {
  return deed.kind === 'hook' ? `creates the Job of the hook of ${deed.node}` : wordsForDeed(deed);
}
