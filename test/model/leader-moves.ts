/** Owns everything a leader may do next: any number of leaders, each deciding on any mixture of versions it may still see. */
import type { Plan } from '../../src/api/autopilot/plan.ts';
import { autopilot } from '../../src/dialects/autopilot/dialect.ts';
import { gather } from '../../src/engine/gather.ts';
import type { Role } from '../../src/engine/model.ts';
import { OwnWrites } from '../../src/engine/own-writes.ts';
import { DEFAULT_POLICY } from '../../src/engine/policy/campaign-policy.ts';
import { freshWorld } from '../../src/engine/world.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { decodeSignal } from '../../src/signal/codec.ts';
import type { Configuration } from './cluster.ts';
import { type Leader, viewsOfRoles } from './leader.ts';
import { named, nameless } from './nameless.ts';
import { contentOf, objectAt } from './node-state.ts';
import { type Numbering, once } from './numbering.ts';
import { changeOf } from './plan-words.ts';

/** What the API server holds that leaders look at: versions as numbers of contents, oldest first. */
export interface Holdings {
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  readonly plan: readonly number[];
  /** By place in the configuration. */
  readonly nodes: readonly (readonly number[])[];
  /** Controllers whose API server is not ready. */
  readonly down: readonly string[];
}

export interface LeaderMove {
  readonly label: string;
  readonly fair: boolean;
  /** What is written: the plan's status, or the object of the node at this place. */
  readonly object: 'plan' | number;
  readonly content: number;
}

/** One version of one object, seen beside one version of the plan: all by number of their contents. */
export interface Telling {
  readonly now: number;
  readonly plan: number;
  readonly place: number;
  readonly content: number;
  /** True where the plan records the target as settled, so that its answer tells nothing any more. */
  readonly isSettled?: boolean;
}

interface Choice {
  readonly plan: number;
  /** By place: the resourceVersion that is seen. */
  readonly nodes: readonly number[];
  readonly down: readonly string[];
}

export class LeaderMoves {
  readonly #configuration: Configuration;
  readonly #contents: Numbering<KubeObject>;
  readonly #leader: Leader;
  readonly #moves = new Map<string, Promise<readonly LeaderMove[]>>();
  readonly #decisions = new Map<string, Promise<readonly KubeObject[]>>();
  readonly #facts = new Map<string, string>();
  readonly #objects = new Map<string, KubeObject>();

  constructor(configuration: Configuration, contents: Numbering<KubeObject>, leader: Leader) {
    this.#configuration = configuration;
    this.#contents = contents;
    this.#leader = leader;
  }

  async of(holdings: Holdings): Promise<readonly LeaderMove[]> {
    const key = [holdings.now, holdings.plan, ...holdings.nodes, holdings.down].join('/');
    return await once(this.#moves, key, async () => {
      const moves = new Map<string, LeaderMove>();
      for (const choice of this.#choices(holdings)) {
        for (const move of await this.#movesFor(choice, holdings)) {
          const name = `${move.object}/${move.content}`;
          if (moves.get(name)?.fair !== true) moves.set(name, move);
        }
      }
      return [...moves.values()];
    });
  }

  /** Every mixture of versions, but only the newest of those that tell a leader the same. */
  *#choices(holdings: Holdings): Generator<Choice> {
    const answers = holdings.down.length > 0 ? [[], holdings.down] : [[]];
    for (const plan of newestOfEach(holdings.plan, (version) => String(holdings.plan[version - 1]))) {
      const seen = holdings.nodes.map((versions, place) =>
        newestOfEach(versions, (version) => {
          const [seenPlan = 0, content = 0] = [holdings.plan[plan - 1], versions[version - 1]];
          return this.tells({ now: holdings.now, plan: seenPlan, place, content });
        }),
      );
      for (const nodes of product(seen)) {
        for (const down of answers) yield { plan, nodes, down };
      }
    }
  }

  /** What the engine gathers of one node, in the words that decisions depend on. */
  tells({ now, plan, place, content, isSettled = false }: Telling): string {
    const key = [now, plan, place, content, isSettled].join('/');
    return once(this.#facts, key, () => {
      const { role } = this.#configuration.nodes[place] ?? { role: 'worker' };
      const object = this.#objectAt(place, [content], 1);
      const seen = { controller: role === 'controller' ? [object] : [], worker: role === 'worker' ? [object] : [] };
      const alone = freshWorld(viewsOfRoles(seen), new OwnWrites());
      const planned = this.#contents.valueOf(plan) as Plan;
      const { campaign: _, facts, ...more } = gather(autopilot, planned, alone, now);
      const gathered = { ...more, facts: [...facts] };
      return JSON.stringify(gathered, (name, value: unknown) => {
        return IRRELEVANT.has(name) || (isSettled && name === 'observation') ? undefined : value;
      });
    });
  }

  async #movesFor(choice: Choice, holdings: Holdings): Promise<LeaderMove[]> {
    const current = this.#planAt(holdings, holdings.plan.length);
    const writes = await this.#decide(choice, holdings, current);
    const isFresh = choice.plan === holdings.plan.length && lagOf(choice, holdings) === '';
    const fair = isFresh && choice.down.length === holdings.down.length;
    return writes.flatMap((object): LeaderMove[] => {
      const place = this.#configuration.nodes.findIndex(({ name }) => name === object.metadata.name);
      const isPlan = place < 0;
      const newest = isPlan ? holdings.plan.length : holdings.nodes[place]?.length;
      if (versionOf(object) !== newest) return [];
      const status = (object as Plan).status;
      const written = isPlan ? { ...current, ...(status && { status }) } : object;
      const label = `a leader ${isPlan ? changeOf(current, written as Plan) : signalOf(object)}${lagOf(choice, holdings)}`;
      const stored = isPlan ? written : nameless(object, object.metadata.name);
      return [{ label, fair, object: isPlan ? 'plan' : place, content: contentOf(this.#contents, stored) }];
    });
  }

  async #decide(choice: Choice, holdings: Holdings, current: Plan): Promise<readonly KubeObject[]> {
    const seen = choice.nodes.map((version, place) => `${version}=${holdings.nodes[place]?.[version - 1]}`);
    const plan = `${choice.plan}=${holdings.plan[choice.plan - 1]}`;
    const key = [holdings.now, plan, current.metadata.resourceVersion, ...seen, choice.down].join();
    return await once(
      this.#decisions,
      key,
      async () =>
        await this.#leader({
          plan: this.#planAt(holdings, choice.plan),
          current,
          objects: this.#objectsAt(holdings, choice.nodes),
          down: choice.down,
          now: holdings.now,
          policy: { ...DEFAULT_POLICY, targetDeadlineMs: this.#configuration.targetDeadlineMs },
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

  /** With the name of the node at the place. */
  #objectAt(place: number, versions: readonly number[], version: number): KubeObject {
    return once(this.#objects, `${place}/${version}=${versions[version - 1]}`, () =>
      named(objectAt(this.#contents, versions, version), this.#configuration.nodes[place]?.name ?? ''),
    );
  }
}

/** Parts of an observation on which nothing is decided: the tests of the engine say so. */
const IRRELEVANT: ReadonlySet<string> = new Set(['step', 'since', 'report']);

/** The newest resourceVersion of each kind, the newest kind first. */
function newestOfEach(versions: readonly number[], kindOf: (version: number) => string): number[] {
  const newest = new Map<string, number>();
  for (let version = versions.length; version > 0; version--) {
    const kind = kindOf(version);
    if (!newest.has(kind)) newest.set(kind, version);
  }
  return [...newest.values()];
}

function product(choices: readonly (readonly number[])[]): number[][] {
  return choices.reduce<number[][]>((rows, next) => rows.flatMap((row) => next.map((each) => [...row, each])), [[]]);
}

/** The version that a request holds for: one without would take effect whatever happened since, and is a mistake. */
function versionOf({ metadata: { name, resourceVersion } }: KubeObject): number {
  if (resourceVersion === undefined) throw new Error(`a write of ${name} without a resourceVersion`);
  return Number(resourceVersion);
}

function lagOf({ plan, nodes }: Choice, holdings: Holdings): string {
  const lags = holdings.nodes.flatMap(({ length }, place) =>
    nodes[place] === length ? [] : [`node ${place + 1} at ${nodes[place]} of ${length}`],
  );
  if (plan !== holdings.plan.length) lags.unshift(`plan at ${plan} of ${holdings.plan.length}`);
  return lags.length === 0 ? '' : `, seeing ${lags.join(' and ')}`;
}

function signalOf({ metadata }: KubeObject): string {
  return `asks to signal ${metadata.name} for ${decodeSignal(metadata.annotations)?.command.version}`;
}
