/** Counts the checks. A failed check does not end the run, because the checks after it may show the cause. */
import { messageOf } from '../../src/util/errors.ts';

export interface Outcome {
  readonly passed: number;
  /** The name of each failed check and the reason of the failure, on one line. */
  readonly failed: readonly string[];
}

export class Checks {
  readonly #log: (line: string) => void;
  readonly #failed: string[] = [];
  #passed = 0;

  constructor(log: (line: string) => void) {
    this.#log = log;
  }

  get outcome(): Outcome {
    return { passed: this.#passed, failed: this.#failed };
  }

  /** Runs a check. `look` returns what is wrong: an empty list if the check passes. */
  async check(
    name: string,
    look: () => readonly string[] | Promise<readonly string[]>,
  ): Promise<void> {
    const wrong = await Promise.try(look).catch((error: unknown) => [messageOf(error)]);
    if (wrong.length === 0) {
      this.#passed++;
      this.#log(`passed: ${name}`);
    } else {
      const failed = `${name}: ${wrong.join('; ')}`;
      this.#failed.push(failed.replaceAll(/\s*\n\s*/g, ' | '));
      this.#log(`FAILED: ${failed}`);
    }
  }

  /** Logs what the product can't do, and why. This counts neither as passed nor as failed. */
  gap(name: string, reason: string): void {
    this.#log(`not: ${name}: ${reason}`);
  }
}

/** Returns the values that differ from `expected`, each with its name. */
export function differing(found: Readonly<Record<string, unknown>>, expected: unknown): string[] {
  return Object.entries(found).flatMap(([name, value]) =>
    value === expected
      ? []
      : [`${name} has ${JSON.stringify(value)}, not ${JSON.stringify(expected)}`],
  );
}
