/** Runs one case against one server: fills in the names, sends the steps in order, and records the answers. */
import { isDeepStrictEqual } from 'node:util';
import { vi } from 'vitest';
import { isRecord } from '../../../src/util/json.ts';
import type { RequestStep, Step } from './case.ts';
import type { Answer, Stream, Wire } from './wire.ts';

/** The result of one step: an answer, or the events of a watch. */
export type Observation =
  | ({
      readonly step: string;
      readonly anyMessage: boolean;
      readonly managedFields: boolean;
    } & Answer)
  | { readonly step: string; readonly events: readonly unknown[]; readonly ended: boolean };

/** The names that belong to the case alone. */
export interface Names {
  readonly ns: string;
  readonly id: string;
  readonly group: string;
}

/** Milliseconds after which a wait for events or for a state fails. */
const PATIENCE = { timeout: 150_000, interval: 100 };

class Run {
  readonly observations: Observation[] = [];
  readonly #wire: Wire;
  readonly #names: Names;
  readonly #answers = new Map<string, unknown>();
  readonly #streams = new Map<string, { stream: Stream; seen: number }>();
  readonly #created: string[] = [];

  constructor(wire: Wire, names: Names) {
    this.#wire = wire;
    this.#names = names;
  }

  async take(step: Step, label: string): Promise<void> {
    switch (step.do) {
      case 'request':
        return await this.#request(step, label);
      case 'watch':
        this.#streams.set(step.as, {
          stream: await this.#wire.stream(this.#fill(step.path), step.accept),
          seen: 0,
        });
        return undefined;
      case 'events':
        return await this.#collect(step.of, label, step.count);
      case 'end':
        return await this.#collect(step.of, label, undefined);
      case 'until':
        return await this.#until(step.path, step.member, step.equals);
    }
  }

  async #request(step: RequestStep, label: string): Promise<void> {
    const { method, contentType, accept } = step;
    const path = this.#fill(step.path);
    const filled = this.#fillAll(step.body);
    const body =
      filled === undefined || typeof filled === 'string' ? filled : JSON.stringify(filled);
    const answer = await this.#wire.send({ method, path, body, contentType, accept });
    if (answer.code === 201 && !path.includes('dryRun'))
      this.#created.push(addressOf(path, answer.body));
    if (step.as !== undefined) this.#answers.set(step.as, answer.body);
    const { anyMessage = false, managedFields = false } = step;
    this.observations.push({ step: label, anyMessage, managedFields, ...answer });
  }

  async #collect(name: string, label: string, count: number | undefined): Promise<void> {
    const watch = this.#streams.get(name);
    if (!watch) throw new Error(`no watch ${name}`);
    const { stream } = watch;
    const counted = (): unknown[] =>
      stream.lines.slice(watch.seen).filter((line) => !isHeartbeat(line));
    await vi.waitFor(() => {
      if (stream.ended || (count !== undefined && counted().length >= count)) return;
      throw new Error(`${label}: ${this.#wire.name} sent only ${JSON.stringify(counted())}`);
    }, PATIENCE);
    const found = counted();
    this.observations.push({
      step: label,
      events: found,
      ended: count === undefined && stream.ended,
    });
    watch.seen = stream.lines.length;
  }

  async #until(path: string, member: string, equals: unknown): Promise<void> {
    await vi.waitFor(async () => {
      const { body } = await this.#wire.send({ method: 'GET', path: this.#fill(path) });
      const value = memberAt(body, member.split('.'));
      if (!isDeepStrictEqual(value, equals))
        throw new Error(`${member} of ${path} is ${JSON.stringify(value)}`);
    }, PATIENCE);
  }

  /** Removes all objects that the case created, the newest first, together with their finalizers. */
  async clean(): Promise<void> {
    for (const { stream } of this.#streams.values()) stream.close();
    for (const path of this.#created.toReversed()) {
      const { code, body } = await this.#wire.send({
        method: 'DELETE',
        path: `${path}?gracePeriodSeconds=0`,
      });
      const held =
        code === 200 && isRecord(body) && memberAt(body, ['metadata', 'finalizers']) !== undefined;
      const contentType = 'application/merge-patch+json';
      if (held)
        await this.#wire.send({
          method: 'PATCH',
          path,
          contentType,
          body: '{"metadata":{"finalizers":null}}',
        });
    }
  }

  #fillAll(value: unknown): unknown {
    if (typeof value === 'string')
      return /^\{[\w-]+(\.[\w-]+)+\}$/.test(value) ? this.#lookUp(value) : this.#fill(value);
    if (Array.isArray(value)) return value.map((item) => this.#fillAll(item));
    if (!isRecord(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, item]) => [this.#fill(key), this.#fillAll(item)]),
    );
  }

  #fill(text: string): string {
    const { ns, id, group } = this.#names;
    return text
      .replaceAll('$ns', ns)
      .replaceAll('$id', id)
      .replaceAll('$group', group)
      .replaceAll(/\{[\w-]+(\.[\w-]+)+\}/g, (reference) => String(this.#lookUp(reference)));
  }

  #lookUp(reference: string): unknown {
    const [name = '', ...path] = reference.slice(1, -1).split('.');
    return memberAt(this.#answers.get(name), path);
  }
}

/**
 * Reports whether the line is a bookmark that contains only a revision. Servers may send any number of such bookmarks.
 */
function isHeartbeat(line: unknown): boolean {
  return (
    isRecord(line) && line['type'] === 'BOOKMARK' && !JSON.stringify(line).includes('annotations')
  );
}

/** Returns the path at which an object that was just created can be deleted. */
function addressOf(path: string, body: unknown): string {
  const [collection = ''] = path.split('?');
  const name = memberAt(body, ['metadata', 'name']);
  return typeof name === 'string' && !collection.endsWith(`/${name}`)
    ? `${collection}/${name}`
    : collection;
}

function memberAt(value: unknown, path: readonly string[]): unknown {
  return path.reduce<unknown>((at, member) => {
    if (Array.isArray(at)) return at[Number(member)];
    return isRecord(at) ? at[member] : undefined;
  }, value);
}

/** Runs all steps, and then removes the objects that the steps created. */
export async function runCase(
  steps: readonly Step[],
  wire: Wire,
  names: Names,
): Promise<readonly Observation[]> {
  const run = new Run(wire, names);
  try {
    for (const [index, step] of steps.entries()) await run.take(step, labelOf(step, index));
    return run.observations;
  } finally {
    await run.clean();
  }
}

function labelOf(step: Step, index: number): string {
  const what =
    step.do === 'request'
      ? `${step.method} ${step.path}`
      : `${step.do} ${'of' in step ? step.of : step.path}`;
  return `${index + 1}. ${what}`;
}
