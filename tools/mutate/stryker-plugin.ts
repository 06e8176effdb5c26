/** The test runner `in-process` of Stryker: one Vitest worker loads the code once, then runs the tests of every change. */
import { join } from 'node:path';
import { BroadcastChannel } from 'node:worker_threads';
import { createVitest, type Vitest } from 'vitest/node';
import { type Answer, CHANNEL, type Message, type Order, type TestOutcome } from './messages.ts';

interface MutantRun {
  readonly testFilter?: readonly string[];
  readonly hitLimit?: number;
  readonly activeMutant: { readonly id: string };
  readonly sandboxFileName?: string;
}

class InProcessRunner {
  #vitest: Vitest | undefined;
  #ended: Promise<unknown> = Promise.resolve();
  #channel = new BroadcastChannel(CHANNEL);
  #heard: (message: Message) => void = () => {};

  capabilities(): { reloadEnvironment: boolean } {
    return { reloadEnvironment: false };
  }

  async init(): Promise<void> {
    process.env['NODE_ENV'] = 'test';
    process.env['VITEST'] = '1';
    this.#channel.onmessage = (event) => this.#heard((event as { data: Message }).data);
    await this.#open();
  }

  async dryRun(): Promise<object> {
    const { tests, coverage } = await this.#order({
      mutant: undefined,
      tests: undefined,
      hitLimit: undefined,
    });
    return {
      status: 'complete',
      tests: tests.map(({ failure, ...test }) =>
        failure === undefined
          ? { ...test, status: 0 }
          : { ...test, status: 1, failureMessage: failure },
      ),
      mutantCoverage: coverage,
    };
  }

  async mutantRun(run: MutantRun): Promise<object> {
    const { testFilter: tests, hitLimit, activeMutant, sandboxFileName: source } = run;
    const order = { mutant: activeMutant.id, source, tests, hitLimit };
    let answer = await this.#order(order);
    if (answer.spoilt) {
      await this.#close();
      await this.#open();
      answer = await this.#order(order);
      if (answer.spoilt) {
        await this.#close();
        await this.#open();
      }
    }
    const { tests: ran, hitCount } = answer;
    if (hitLimit !== undefined && hitCount > hitLimit) {
      return { status: 'timeout', reason: `executed ${hitCount} times, of ${hitLimit} allowed` };
    }
    const failed = ran.filter(isFailed);
    const [first] = failed;
    if (first === undefined) return { status: 'survived', nrOfTests: ran.length };
    return {
      status: 'killed',
      killedBy: failed.map(({ id }) => id),
      failureMessage: first.failure,
      nrOfTests: ran.length,
    };
  }

  async dispose(): Promise<void> {
    await this.#close();
    this.#channel.close();
  }

  async #open(): Promise<void> {
    const ready = this.#next();
    const vitest = await createVitest('test', {
      config: 'vitest.mutate.config.ts',
      watch: false,
      reporters: [{}],
    });
    this.#vitest = vitest;
    this.#ended = vitest.start([join('tools', 'mutate', 'serve-orders.ts')]);
    await Promise.race([ready, this.#ended.then(() => reportErrors(vitest))]);
  }

  async #close(): Promise<void> {
    this.#channel.postMessage({ kind: 'end' });
    await this.#ended;
    await this.#vitest?.close();
  }

  async #order(order: Omit<Order, 'kind'>): Promise<Answer> {
    const answer = this.#next();
    this.#channel.postMessage({ kind: 'order', ...order } satisfies Order);
    const message = await answer;
    if (message.kind === 'answer') return message;
    throw new Error(message.kind === 'broken' ? message.reason : `unexpected ${message.kind}`);
  }

  async #next(): Promise<Message> {
    return await new Promise((resolve) => {
      this.#heard = resolve;
    });
  }
}

function isFailed(test: TestOutcome): boolean {
  return test.failure !== undefined;
}

function reportErrors(vitest: Vitest): never {
  const errors = vitest.state.getFiles().flatMap((file) => file.result?.errors ?? []);
  const all = [...errors, ...vitest.state.getUnhandledErrors()] as { message?: string }[];
  throw new Error(`the worker ended: ${all.map(({ message }) => message).join('; ')}`);
}

function createRunner(): InProcessRunner {
  return new InProcessRunner();
}
createRunner.inject = [] as const;

export const strykerPlugins = [{ kind: 'TestRunner', name: 'in-process', factory: createRunner }];
