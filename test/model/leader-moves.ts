/** The next moves of leaders: any number of them, each deciding on any mixture of cached versions. */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/dialect.ts';
import type { TargetReport } from '../../src/engine/model/decision.ts';
import type { Role } from '../../src/engine/model/rollout.ts';
import { gather } from '../../src/engine/observe/gather.ts';
import { freshWorld, OwnWrites } from '../../src/engine/observe/world.ts';
import { DEFAULT_POLICY, type RolloutPolicy } from '../../src/engine/policy/rollout-policy.ts';
import type { KubeObject } from '../../src/kube/resources.ts';
import { ROLLOUT_ANNOTATION } from '../../src/signal/names.ts';
import type { Configuration } from './cluster.ts';
import { type Deeds, type Leader, viewsOfRoles } from './leader.ts';
import { type Choice, choicesOf, type Holdings, isFresh, lagOf } from './leader-view.ts';
import { named, nameless } from './nameless.ts';
import { contentOf, objectAt } from './node-state.ts';
import { type Numbering, once } from './numbering.ts';
import { changeOf } from './plan-words.ts';
import { wordsFor } from './signal-words.ts';

export type LeaderMove = { readonly label: string; readonly fair: boolean } & (
  | { readonly kind: 'record'; readonly content: number }
  /** Asks for a write of the object at this place. */
  | { readonly kind: 'ask'; readonly place: number; readonly content: number }
  | { readonly kind: 'drain'; readonly place: number }
);

/** One version of one object, seen beside one version of the plan: all by number of their contents. */
export interface Telling {
  readonly now: number;
  readonly plan: number;
  readonly place: number;
  readonly content: number;
  /** True where the plan records the target as done, so that its answer tells nothing any more. */
  readonly isDone?: boolean;
}

export class LeaderMoves {
  readonly #configuration: Configuration;
  readonly #contents: Numbering<KubeObject>;
  readonly #leader: Leader;
  readonly #policy: RolloutPolicy;
  readonly #moves = new Map<string, Promise<readonly LeaderMove[]>>();
  readonly #decisions = new Map<string, Promise<Deeds>>();
  readonly #facts = new Map<string, string>();
  readonly #objects = new Map<string, KubeObject>();

  constructor(configuration: Configuration, contents: Numbering<KubeObject>, leader: Leader) {
    this.#configuration = configuration;
    this.#contents = contents;
    this.#leader = leader;
    this.#policy = policyFor(configuration);
  }

  async of(holdings: Holdings): Promise<readonly LeaderMove[]> {
    const { now, plan, nodes, drains, down } = holdings;
    return await once(this.#moves, [now, plan, ...nodes, drains, down].join('/'), async () => {
      const moves = new Map<string, LeaderMove>();
      const tells = (seen: number, place: number, version: number): string =>
        this.tells({ now, plan: plan[seen - 1] ?? 0, place, content: nodes[place]?.[version - 1] ?? 0 });
      for (const choice of choicesOf(holdings, tells)) {
        for (const move of await this.#movesFor(choice, holdings)) {
          const { label: _label, fair: _fair, ...deed } = move;
          const key = JSON.stringify(deed);
          if (moves.get(key)?.fair !== true) moves.set(key, move);
        }
      }
      return [...moves.values()];
    });
  }

  /** The oldest resourceVersion that a leader may see of an object with these contents. */
  oldestOf(versions: readonly number[]): number {
    if (this.#configuration.leaders === 'any') return 1;
    const signals = versions.map(
      (content) => this.#contents.valueOf(content).metadata.annotations?.[ROLLOUT_ANNOTATION],
    );
    return signals.indexOf(signals.at(-1)) + 1;
  }

  /** What the engine gathers of one node, in the words that decisions depend on. */
  tells({ now, plan, place, content, isDone = false }: Telling): string {
    return once(this.#facts, [now, plan, place, content, isDone].join('/'), () => {
      const { role } = this.#configuration.nodes[place] ?? { role: 'worker' };
      const object = this.#objectAt(place, [content], 1);
      const seen = { controller: role === 'controller' ? [object] : [], worker: role === 'worker' ? [object] : [] };
      const alone = freshWorld(viewsOfRoles(seen), new OwnWrites());
      const planned = this.#contents.valueOf(plan) as Plan;
      const { rollout: _, facts, ...more } = gather(autopilot, planned, alone, now);
      const gathered = { ...more, facts: [...facts] };
      return JSON.stringify(gathered, (name, value: unknown) => {
        if (name === 'report') return (value as TargetReport | undefined)?.rolledBack;
        return IRRELEVANT.has(name) || (isDone && name === 'observation') ? undefined : value;
      });
    });
  }

  async #movesFor(choice: Choice, holdings: Holdings): Promise<LeaderMove[]> {
    const current = this.#planAt(holdings, holdings.plan.length);
    const deeds = await this.#decide(choice, holdings, current);
    const [fair, lag] = [isFresh(choice, holdings), lagOf(choice, holdings)];
    const placeOf = (name: string): number => this.#configuration.nodes.findIndex((node) => node.name === name);
    const drains = deeds.begun.map((name): LeaderMove => {
      return { kind: 'drain', place: placeOf(name), label: `a leader begins to drain ${name}${lag}`, fair };
    });
    const writes = deeds.writes.flatMap((object): LeaderMove[] => {
      const { name } = object.metadata;
      const place = placeOf(name);
      const isPlan = place < 0;
      if (versionOf(object) !== (isPlan ? holdings.plan.length : holdings.nodes[place]?.length)) return [];
      if (isPlan) return [this.#recorded(object as Plan, current, lag, fair)];
      const content = contentOf(this.#contents, nameless(object, name));
      const before = this.#objectAt(place, holdings.nodes[place] ?? [], choice.nodes[place] ?? 0);
      const label = `a leader asks to ${wordsFor(before, object)}${lag}`;
      return [{ kind: 'ask', place, content, label, fair }];
    });
    return [...drains, ...writes];
  }

  /** The write of a status changes nothing else. */
  #recorded({ status }: Plan, current: Plan, lag: string, fair: boolean): LeaderMove {
    const written = { ...current, ...(status && { status }) };
    const label = `a leader ${changeOf(current, written)}${lag}`;
    return { kind: 'record', content: contentOf(this.#contents, written), label, fair };
  }

  async #decide(choice: Choice, holdings: Holdings, current: Plan): Promise<Deeds> {
    const seen = choice.nodes.map((version, place) => {
      const versions = holdings.nodes[place] ?? [];
      return `${version}=${versions[version - 1]}${version === versions.length ? '' : ' old'}`;
    });
    const plan = `${choice.plan}=${holdings.plan[choice.plan - 1]}`;
    const { drains, down, watchedMs } = choice;
    const key = [holdings.now, plan, current.metadata.resourceVersion, ...seen, drains, down, watchedMs].join();
    const names = this.#configuration.nodes.map(({ name }) => name);
    return await once(
      this.#decisions,
      key,
      async () =>
        await this.#leader({
          plan: this.#planAt(holdings, choice.plan),
          current,
          objects: this.#objectsAt(holdings, choice.nodes),
          newest: this.#newestIn(holdings),
          drains: new Map(drains.flatMap((kind, place) => (kind ? [[names[place] ?? '', kind] as const] : []))),
          drainDelegation: this.#configuration.cordoner === 'leader',
          down,
          now: holdings.now,
          watchedMs,
          policy: this.#policy,
        }),
    );
  }

  #planAt({ plan }: Holdings, version: number): Plan {
    return objectAt(this.#contents, plan, version) as Plan;
  }

  #objectsAt(holdings: Holdings, seen: readonly number[]): Record<Role, KubeObject[]> {
    const objects: Record<Role, KubeObject[]> = { controller: [], worker: [] };
    this.#configuration.nodes.forEach(({ role }, place) => {
      objects[role].push(this.#objectAt(place, holdings.nodes[place] ?? [], seen[place] ?? 0));
    });
    return objects;
  }

  #newestIn({ nodes }: Holdings): Map<string, KubeObject> {
    return new Map(
      nodes.map((versions, place) => {
        const object = this.#objectAt(place, versions, versions.length);
        return [object.metadata.name, object];
      }),
    );
  }

  /** With the name of the node at the place. */
  #objectAt(place: number, versions: readonly number[], version: number): KubeObject {
    return once(this.#objects, `${place}/${version}=${versions[version - 1]}`, () =>
      named(objectAt(this.#contents, versions, version), this.#configuration.nodes[place]?.name ?? ''),
    );
  }
}

/** Only the deadline of the whole target counts: of a moment of the model's clock nobody knows how long it is. */
function policyFor({ targetDeadlineMs, maxFailures }: Configuration): RolloutPolicy {
  const ms = Infinity;
  const stepDeadlines = { answer: ms, download: ms, drain: ms, apply: ms, restart: ms, ready: ms };
  return { ...DEFAULT_POLICY, maxFailures, targetDeadlineMs, stepDeadlines };
}

/** Parts of an observation on which nothing is decided. Of a report only whether the roll-back worked counts. */
const IRRELEVANT: ReadonlySet<string> = new Set(['step', 'since']);

/** The version that a request holds for: one without would take effect whatever happened since, and is a mistake. */
function versionOf({ metadata: { name, resourceVersion } }: KubeObject): number {
  if (resourceVersion === undefined) throw new Error(`a write of ${name} without a resourceVersion`);
  return Number(resourceVersion);
}
