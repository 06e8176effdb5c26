/** The messages between Stryker's process and the worker that runs the tests. */

/**
 * Stryker's process and the worker open a BroadcastChannel with this name. It reaches every thread of one process, and
 * no other process.
 */
export const CHANNEL = 'mutants';

export interface Order {
  readonly kind: 'order';
  /**
   * The change that is active while the tests run; undefined for the run that finds out which code each test executes.
   */
  readonly mutant: string | undefined;
  /** The file of the change. */
  readonly source?: string | undefined;
  /** The tests to run; undefined for all. */
  readonly tests: readonly string[] | undefined;
  /** The number of times that the changed place may be executed: more is an endless loop. */
  readonly hitLimit: number | undefined;
}

export interface TestOutcome {
  readonly id: string;
  readonly name: string;
  readonly fileName: string;
  readonly timeSpentMs: number;
  /** The reason of the failure; undefined if the test passed. */
  readonly failure: string | undefined;
  readonly startPosition: { readonly line: number; readonly column: number } | undefined;
}

export interface Answer {
  readonly kind: 'answer';
  readonly tests: readonly TestOutcome[];
  readonly hitCount: number;
  /**
   * True if a test failed with the change and still fails without the change. Then the process cannot be used any more.
   */
  readonly spoilt: boolean;
  /** How often each test executed each place, in the form that Stryker defines. */
  readonly coverage: unknown;
}

export type Message =
  | Order
  | Answer
  | { readonly kind: 'ready' }
  | { readonly kind: 'broken'; readonly reason: string }
  | { readonly kind: 'end' };
