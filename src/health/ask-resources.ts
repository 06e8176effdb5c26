/** Asks whether a CEL expression is true for each object that a check selects. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { KubeClient } from '../kube/client.ts';
import { type KubeObject, keyOf, type Resource } from '../kube/resources.ts';
import { selectorText } from '../kube/selectors.ts';
import { resourceIn } from '../kube/served-kinds.ts';
import { isForbidden, isTooLarge } from '../kube/status-error.ts';
import { type MonotonicClock, systemClock } from '../util/clock.ts';
import { unlessError } from '../util/errors.ts';
import { parseJson } from '../util/json.ts';
import { listed } from '../util/phrases.ts';
import { type CelProgram, compileCel } from './cel.ts';
import type { CheckFinding, ResourceCheck } from './checks.ts';

/** The most objects of one check. Without this limit, memory use and duration would be unlimited. */
const MOST_OBJECTS = 5_000;
/** The number of objects on the first page. */
const FIRST_PAGE = 50;
/** The most objects of a page. A larger page would block the event loop. */
const MOST_PER_PAGE = 500;
/**
 * If a page fits, the size of the next page is multiplied by GROWTH. If a page has too many bytes, its size is divided
 * by SHRINKAGE.
 */
const GROWTH = 2;
const SHRINKAGE = 4;
/**
 * The number of pages that must fit before the page size may grow again. With a smaller number, pages with large
 * objects would too often not fit, and would be read twice.
 */
const PAGES_BEFORE_GROWTH = 4;
/**
 * The most bytes on a page. Several checks read at the same time, and the parsed objects take several times as much
 * memory. An object has at most about 3 MiB, so a page with a single object always fits.
 */
const MOST_PAGE_BYTES = 8 * 1024 * 1024;
/**
 * Milliseconds of CPU time that the evaluations of one round may take. The CPU time of other programs on a busy machine
 * does not count.
 */
const ROUND_MS = 4_000;
/** Milliseconds of elapsed time after which the evaluation lets other work of the event loop run. */
const TURN_MS = 20;
/** The most objects that the message names. */
const MOST_NAMES = 3;

export interface EvaluationTools {
  /** The clock that says when the evaluation lets other work of the event loop run. */
  readonly clock?: MonotonicClock;
  readonly roundMs?: number;
}

export async function askResources(
  client: KubeClient,
  check: ResourceCheck,
  abort: AbortSignal,
  { clock = systemClock, roundMs = ROUND_MS }: EvaluationTools = {},
): Promise<CheckFinding> {
  const program = compileCel(check.expression);
  if (typeof program === 'string') return unknown(`the expression is wrong: ${program}`);
  const resource = await resourceOf(client, check, abort);
  if (typeof resource === 'string') return unknown(resource);
  const { kind, namespaced: isNamespaced } = resource;
  if (check.namespace !== undefined && !isNamespaced)
    return unknown(`${kind} is a kind without namespaces, but the check names a namespace`);
  const tally = new Tally(program, kind !== 'Secret', { clock, roundMs });
  try {
    for await (const page of pagesOf(client, resource, check, abort)) {
      const obstacle = await tally.add(page, abort);
      if (obstacle !== undefined) return unknown(obstacle);
    }
  } catch (error) {
    if (isForbidden(error)) return unknown(missingRight(resource, check));
    // Each other error may quote the answer of the API server.
    if (kind === 'Secret' && !abort.aborted && !(error instanceof ObjectTooLarge))
      return unknown('the API server gave no usable answer about the Secrets');
    throw error;
  }
  return tally.finding(check);
}

/**
 * Yields the objects page by page, because all of them may not fit into memory. If a page has too many bytes, it is
 * requested again with fewer objects. Therefore the memory use does not depend on the size of the objects.
 */
async function* pagesOf(
  client: KubeClient,
  resource: Resource,
  { namespace, selector = {} }: ResourceCheck,
  abort: AbortSignal,
): AsyncGenerator<KubeObject[]> {
  const selection = { namespace, labelSelector: selectorText(selector), abort };
  let limit = FIRST_PAGE;
  let most = MOST_PER_PAGE;
  let fitting = 0;
  let next: string | undefined;
  for (;;) {
    const options = { ...selection, limit, continue: next, mostBytes: MOST_PAGE_BYTES };
    const page = await unlessTooLarge(client.list(resource, options));
    if (page === undefined) {
      if (limit === 1) throw new ObjectTooLarge(resource);
      // The next pages must be smaller than the page that did not fit. Otherwise pages with large objects would
      // repeatedly not fit, and would be read twice.
      most = Math.ceil(limit / GROWTH);
      fitting = 0;
      limit = Math.ceil(limit / SHRINKAGE);
      continue;
    }
    yield page.items;
    next = page.metadata.continue;
    if (next === undefined || next === '') return;
    fitting++;
    // After some pages that fit, the page size may grow again. Otherwise a few large objects would make the pages of
    // all later objects small, and the check has little time.
    if (fitting % PAGES_BEFORE_GROWTH === 0) most = Math.min(MOST_PER_PAGE, most * GROWTH);
    limit = Math.min(most, limit * GROWTH);
  }
}

/** Resolves with undefined if the answer has too many bytes. */
const unlessTooLarge = unlessError(isTooLarge);

class ObjectTooLarge extends Error {
  override readonly name = 'ObjectTooLarge';

  constructor({ kind }: Resource) {
    super(
      `an answer with a single ${kind} object has more than ${MOST_PAGE_BYTES / 1024 / 1024} MiB: leave that object out with namespace or selector`,
    );
  }
}

/** Counts the results of the expression for the objects. */
class Tally {
  readonly #program: CelProgram;
  /** False if a status must not show the values of these objects. */
  readonly #showsValues: boolean;
  readonly #tools: Required<EvaluationTools>;
  readonly #failing: string[] = [];
  #error: string | undefined;
  #count = 0;
  #spentMs = 0;

  constructor(program: CelProgram, showsValues: boolean, tools: Required<EvaluationTools>) {
    this.#program = program;
    this.#showsValues = showsValues;
    this.#tools = tools;
  }

  /**
   * Evaluates the expression for these objects. Resolves with the reason if the check cannot have a result; otherwise
   * with undefined.
   */
  async add(objects: readonly KubeObject[], abort: AbortSignal): Promise<string | undefined> {
    const { clock, roundMs } = this.#tools;
    let turnMs = 0;
    for (const object of objects) {
      if (this.#count === MOST_OBJECTS)
        return `it selects more than ${MOST_OBJECTS} objects: narrow it with namespace or selector`;
      const start = clock.monotonic();
      const before = process.threadCpuUsage();
      const obstacle = this.#judge(object);
      if (obstacle !== undefined) return obstacle;
      const { user, system } = process.threadCpuUsage(before);
      this.#spentMs += (user + system) / 1_000;
      turnMs += clock.monotonic() - start;
      if (this.#spentMs > roundMs)
        return `the evaluation was stopped: it took more than ${roundMs / 1000} s of CPU time for ${this.#count} objects`;
      if (turnMs < TURN_MS) continue;
      turnMs = 0;
      await nextTurn();
      abort.throwIfAborted();
    }
    return undefined;
  }

  #judge(object: KubeObject): string | undefined {
    this.#count++;
    const name = keyOf(object);
    const answer = this.#program.evaluate(object);
    if (answer.kind === 'stopped') return `${name}: ${answer.message}`;
    // The error of an expression quotes the values that do not fit.
    if (answer.kind === 'error')
      this.#error ??= this.#showsValues
        ? `${name}: ${answer.message}`
        : `${name}: the expression cannot be evaluated for this Secret`;
    else if (!answer.value) {
      const isShown = answer.detail !== '' && this.#showsValues;
      this.#failing.push(isShown ? `${name} (${answer.detail})` : name);
    }
    return undefined;
  }

  /** Returns the result of the check. If one object fails and another object cannot be evaluated, the check fails. */
  finding({ objectKind: kind }: ResourceCheck): CheckFinding {
    const failing = this.#failing;
    if (failing.length > 0) {
      const names = listed(failing, MOST_NAMES);
      const message = `${failing.length} of ${this.#count} ${kind} objects fail: ${names}`;
      return { state: 'failing', message };
    }
    if (this.#error !== undefined) return unknown(this.#error);
    if (this.#count === 0)
      return { state: 'failing', message: `it selects no object of the kind ${kind}` };
    return { state: 'passing', message: `all ${this.#count} ${kind} objects pass` };
  }
}

function unknown(message: string): CheckFinding {
  return { state: 'unknown', message };
}

function missingRight({ plural, group }: Resource, { namespace }: ResourceCheck): string {
  const where = namespace === undefined ? 'in all namespaces' : `in the namespace ${namespace}`;
  const what = [plural, group].filter((part) => part !== '').join('.');
  return `Refit lacks the right to list ${what} ${where}; grant it with the value health.resources of the chart, or a role of your own`;
}

/** Resolves with the resource of the kind; with the reason if the API server does not serve it. */
async function resourceOf(
  client: KubeClient,
  { apiVersion, objectKind: kind }: ResourceCheck,
  abort: AbortSignal,
): Promise<Resource | string> {
  const root = apiVersion.includes('/') ? '/apis' : '/api';
  const path = [root, ...apiVersion.split('/').map(encodeURIComponent)].join('/');
  const { status, body } = await client.raw(path, { abort });
  if (status === 404) return `the API server does not serve ${apiVersion}`;
  if (status !== 200)
    return `the API server does not say which kinds ${apiVersion} has: it answered ${status}`;
  const found = resourceIn(parseJson(body), apiVersion, kind);
  return found ?? `the API server serves no kind ${kind} in ${apiVersion}`;
}
