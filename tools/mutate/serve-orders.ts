/**
 * The only test file that Vitest finds during `npm run mutate`. It stays loaded, and runs the tests of each order that
 * Stryker's process sends. A new Vitest run for each change would load all code again, which takes a hundred times as
 * long as the tests.
 */
import { globSync } from 'node:fs';
import { join } from 'node:path';
import { BroadcastChannel } from 'node:worker_threads';
import { TestRunner } from 'vitest';
import { startTests } from 'vitest/internal/browser';
import { type Answer, CHANNEL, type Message, type Order, type TestOutcome } from './messages.ts';

type Runner = InstanceType<typeof TestRunner>;
type File = Awaited<ReturnType<typeof startTests>>[number];
type Task = File['tasks'][number];
type Test = Exclude<Task, { type: 'suite' }>;

/** The data that Stryker's instrumented code reads and writes. */
interface Namespace {
  activeMutant?: string | undefined;
  currentTestId?: string | undefined;
  mutantCoverage?: unknown;
  hitCount?: number | undefined;
  hitLimit?: number | undefined;
}

/** The name of the option `globalNamespace` in Stryker's instrumented code. */
const NAME = '__stryker__';
const shared = globalThis as unknown as { [NAME]?: Namespace };
const namespace: Namespace = {};
shared[NAME] = namespace;

/** Runs some tests of one file. The change is active only while a test runs. */
class OrderRunner extends TestRunner {
  readonly #mutant: string | undefined;
  readonly #wanted: ReadonlySet<string> | undefined;
  #noticed = false;

  constructor(outer: Runner, mutant: string | undefined, wanted: readonly string[] | undefined) {
    super(outer.config);
    this.#mutant = mutant;
    this.#wanted = wanted === undefined ? undefined : new Set(wanted);
    // Vitest sets these properties on its own runner when it starts the worker, so they are copied.
    const given = Object.entries(Object.getOwnPropertyDescriptors(outer));
    for (const [name, property] of given) {
      if (name === 'moduleRunner' || name === '_otel') Object.defineProperty(this, name, property);
    }
  }

  onCollected(files: File[]): void {
    for (const test of files.flatMap(testsOf)) {
      if (this.#wanted?.has(idOf(test)) === false) test.mode = 'skip';
    }
  }

  override async onBeforeRunTask(test: Test): Promise<void> {
    // One test that fails is enough to notice a change.
    if (this.#noticed) test.mode = 'skip';
    await super.onBeforeRunTask(test);
    if (test.mode === 'skip' || test.mode === 'todo') return;
    namespace.currentTestId = idOf(test);
    namespace.activeMutant = this.#mutant;
  }

  override onAfterRunTask(test: Test): void {
    super.onAfterRunTask(test);
    namespace.currentTestId = undefined;
    namespace.activeMutant = undefined;
    if (this.#mutant !== undefined && test.result?.state === 'fail') this.#noticed = true;
  }
}

async function serve(): Promise<void> {
  const outer = (globalThis as { mutateRunner?: Runner }).mutateRunner;
  if (outer === undefined)
    throw new Error('vitest.mutate.config.ts must name tools/mutate/outer-runner.config.ts');
  const channel = new BroadcastChannel(CHANNEL);
  const say = (message: Message): void => channel.postMessage(message);
  await new Promise<void>((resolve) => {
    channel.onmessage = (event) => {
      const message = (event as { data: Message }).data;
      if (message.kind === 'end') resolve();
      if (message.kind !== 'order') return;
      carryOut(outer, message).then(say, (error: unknown) =>
        say({ kind: 'broken', reason: String(error) }),
      );
    };
    say({ kind: 'ready' });
  });
  channel.close();
}

/**
 * The number of times that each test file noticed a change in each file. The test file that noticed most changes runs
 * first.
 */
const noticed = new Map<string, number>();

async function carryOut(outer: Runner, order: Order): Promise<Answer> {
  const { mutant, source = '', tests, hitLimit } = order;
  namespace.hitCount = 0;
  namespace.hitLimit = hitLimit;
  const keyOf = (path: string): string => `${source} ${path}`;
  const timesOf = (id: string): number => noticed.get(keyOf(fileOf(id))) ?? 0;
  const wanted = tests?.toSorted((one, other) => timesOf(other) - timesOf(one));
  const outcomes = await runTests(outer, mutant, wanted);
  const hitCount = namespace.hitCount;
  namespace.hitLimit = undefined;
  const failed = outcomes.filter(({ failure }) => failure !== undefined).map(({ id }) => id);
  for (const id of failed) noticed.set(keyOf(fileOf(id)), timesOf(id) + 1);
  const again =
    mutant === undefined || failed.length === 0 ? [] : await runTests(outer, undefined, failed);
  return {
    kind: 'answer',
    tests: outcomes,
    hitCount,
    spoilt: again.some(({ failure }) => failure !== undefined),
    coverage: mutant === undefined ? namespace.mutantCoverage : undefined,
  };
}

async function runTests(
  outer: Runner,
  mutant: string | undefined,
  wanted: readonly string[] | undefined,
): Promise<TestOutcome[]> {
  const paths = wanted === undefined ? allFiles() : [...new Set(wanted.map(fileOf))];
  const outcomes: TestOutcome[] = [];
  for (const path of paths) {
    const files = await startTests([path], new OrderRunner(outer, mutant, wanted));
    const found = files.flatMap(outcomesOf);
    outcomes.push(...found);
    if (mutant !== undefined && found.some(({ failure }) => failure !== undefined)) break;
  }
  return outcomes;
}

function allFiles(): string[] {
  const root = process.cwd();
  return globSync((process.env['MUTATE_TESTS'] ?? 'src/**/*.test.ts').split(' '), { cwd: root })
    .map((path) => join(root, path))
    .toSorted();
}

function outcomesOf(file: File): TestOutcome[] {
  const ofTests = testsOf(file)
    .filter(({ result }) => result?.state === 'pass' || result?.state === 'fail')
    .map((test) => outcomeOf(test));
  const broken =
    file.result?.state === 'fail' && ofTests.every(({ failure }) => failure === undefined);
  if (!broken) return ofTests;
  const failure = file.result?.errors?.map(({ message }) => message).join('\n') ?? 'the file fails';
  const name = file.filepath;
  const ofFile = { id: `${name}#`, name, fileName: name, timeSpentMs: 0, startPosition: undefined };
  return [...ofTests, { ...ofFile, failure }];
}

function outcomeOf(test: Test): TestOutcome {
  const failed = test.result?.state === 'fail';
  return {
    id: idOf(test),
    name: idOf(test).slice(test.file.filepath.length + 1),
    fileName: test.file.filepath,
    timeSpentMs: test.result?.duration ?? 0,
    failure: failed ? (test.result?.errors?.[0]?.message ?? 'the test fails') : undefined,
    startPosition: test.location,
  };
}

function testsOf(task: Task | File): Test[] {
  return task.type === 'suite' ? task.tasks.flatMap(testsOf) : [task];
}

function idOf(test: Test): string {
  const names = [test.name];
  for (let { suite } = test; suite !== undefined; { suite } = suite) names.unshift(suite.name);
  return `${test.file.filepath}#${names.join(' > ')}`;
}

function fileOf(id: string): string {
  return id.slice(0, id.indexOf('#'));
}

// This call is not within a test, because Vitest refuses to start tests inside of a test.
await serve();
