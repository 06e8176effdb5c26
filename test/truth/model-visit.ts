/** Explores a configuration, and judges what is told in its states. States with equal objects and times share a rendering. */
import { hash } from 'node:crypto';
import type { Configuration } from '../model/cluster.ts';
import { EVERY_RUN_ENDS, explore } from '../model/explorer.ts';
import type { Seen } from '../model/world.ts';
import { TOLD_INVARIANTS, type ToldInvariant } from './model-invariants.ts';
import { knownRowOf } from './model-known.ts';
import { LOOKS, REAL_SURFACES, type Surfaces, toldIn } from './model-renderer.ts';
import type { Told, Truth } from './model-told.ts';
import { truthIn } from './model-truth.ts';
import { factsIn, type Memory, ToldWorld } from './model-world.ts';

export interface Untruth {
  readonly invariant: string;
  readonly sentence: string;
  /** The row of the known untruths to which it belongs; undefined if it is new. */
  readonly knownRow: string | undefined;
  readonly told: Told;
  readonly truth: Truth;
  readonly state: string;
}

export interface Visit {
  readonly states: number;
  /** How many different renderings were made. */
  readonly renderings: number;
  /** How many different pairs of a rendering and a truth were judged. */
  readonly judged: number;
  /** How many of these pairs each invariant had something to say about. */
  readonly concerned: ReadonlyMap<string, number>;
  readonly untruths: readonly Untruth[];
}

export interface VisitOptions {
  readonly surfaces?: Surfaces;
  readonly invariants?: readonly ToldInvariant[];
  /** Only each n-th different rendering is made and judged. */
  readonly each?: number;
  /** The most untruths of an invariant to keep. */
  readonly most?: number;
}

/** A state with what remains of the path to it. */
export interface Visited {
  readonly state: string;
  readonly seen: Seen;
  readonly memory?: Memory;
}

/** Returns all states of the model with its NodeRollout. */
export async function statesOf(configuration: Configuration): Promise<Visited[]> {
  const world = new ToldWorld(configuration);
  const found: Visited[] = [];
  const { violation } = await explore(world, {
    onState: (state) =>
      found.push({ state, seen: world.seen(state), memory: world.memoryOf(state) }),
  });
  // People may do the same again and again, so a run need not end.
  if (violation && violation.invariant !== EVERY_RUN_ENDS)
    throw new Error(`${configuration.name}: ${violation.invariant} is broken`);
  return found;
}

/** Judges what is told in these states. */
export function visit(
  configuration: Configuration,
  states: readonly Visited[],
  options: VisitOptions = {},
): Visit {
  const judge = new Judge(configuration, options);
  for (const each of states) judge.look(each);
  return judge.result();
}

/** Returns a short text that only equal values share. The large clusters have too many states to keep their whole texts. */
function digest(value: unknown): string {
  return hash('sha256', JSON.stringify(value)).slice(0, 32);
}

/** Judges what is told in states. Each different rendering is made once, and judged once for each different truth. */
export class Judge {
  readonly #configuration: Configuration;
  readonly #options: Required<VisitOptions>;
  /** Undefined for the renderings that the sample leaves out. */
  readonly #tellings = new Map<string, readonly Told[] | undefined>();
  readonly #judged = new Set<string>();
  readonly #concerned = new Map<string, number>();
  readonly #untruths: Untruth[] = [];
  #states = 0;
  #renderings = 0;
  #pairs = 0;

  constructor(configuration: Configuration, options: VisitOptions) {
    this.#configuration = configuration;
    this.#options = {
      surfaces: REAL_SURFACES,
      invariants: TOLD_INVARIANTS,
      each: 1,
      most: 3,
      ...options,
    };
  }

  look({ state, seen, memory }: Visited): void {
    this.#states++;
    const key = digest([factsIn(seen), memory?.nodeRollout]);
    const hosts = seen.glance.nodes.map(({ host: { service, target } }) => [
      service?.life,
      service?.file,
      target,
    ]);
    const pair = digest([key, hosts, memory?.admitted]);
    if (this.#judged.has(pair)) return;
    this.#judged.add(pair);
    const told = this.#toldAt(key, seen, memory);
    if (told !== undefined)
      this.#judge(told, truthIn(seen, this.#configuration, memory?.admitted), state);
  }

  result(): Visit {
    return {
      states: this.#states,
      renderings: this.#renderings,
      judged: this.#pairs,
      concerned: this.#concerned,
      untruths: this.#untruths,
    };
  }

  #toldAt(key: string, seen: Seen, memory: Memory | undefined): readonly Told[] | undefined {
    if (this.#tellings.has(key)) return this.#tellings.get(key);
    const { each, surfaces } = this.#options;
    const isInSample = this.#tellings.size % each === 0;
    const told = isInSample
      ? LOOKS.map((look) => toldIn(seen, look, this.#configuration, surfaces, memory?.nodeRollout))
      : undefined;
    this.#renderings += told?.length ?? 0;
    this.#tellings.set(key, told);
    return told;
  }

  #judge(tellings: readonly Told[], truth: Truth, state: string): void {
    for (const told of tellings) {
      this.#pairs++;
      for (const { name, judge } of this.#options.invariants) {
        const sentences = judge(told, truth);
        if (sentences === undefined) continue;
        this.#concerned.set(name, (this.#concerned.get(name) ?? 0) + 1);
        this.#keep(name, sentences, { told, truth, state });
      }
    }
  }

  #keep(
    invariant: string,
    sentences: readonly string[],
    where: Pick<Untruth, 'told' | 'truth' | 'state'>,
  ): void {
    for (const sentence of sentences) {
      const row = knownRowOf(invariant, sentence);
      const alike = this.#untruths.filter(
        (each) => each.invariant === invariant && each.knownRow === row,
      );
      if (alike.length >= this.#options.most) continue;
      this.#untruths.push({ invariant, sentence, knownRow: row, ...where });
    }
  }
}
