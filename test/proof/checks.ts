/** Counts what was checked. A check that fails does not end the run: the next ones may say why. */
import { messageOf } from '../../src/util/errors.ts';

export interface Outcome {
  readonly passed: number;
  /** Each with its reason, on one line. */
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

  /** `look` gives what is wrong: nothing where the check passes. */
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

  /** What the product can't do: told with its reason, and neither passed nor failed. */
  gap(name: string, reason: string): void {
    this.#log(`not: ${name}: ${reason}`);
  }
}

/** What differs from `expected`, each by its name. */
export function differing(found: Readonly<Record<string, unknown>>, expected: unknown): string[] {
  return Object.entries(found).flatMap(([name, value]) =>
    value === expected
      ? []
      : [`${name} has ${JSON.stringify(value)}, not ${JSON.stringify(expected)}`],
  );
}
