/** What Stryker's process and the worker that runs the tests say to each other. */

/** Both ends open a BroadcastChannel of this name: it reaches every thread of one process, and no other process. */
export const CHANNEL = 'mutants';

export interface Order {
  readonly kind: 'order';
  /** The change that is switched on while the tests run; undefined for the run that finds out which test executes what. */
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
  /** Undefined where the test passed. */
  readonly failure: string | undefined;
  readonly startPosition: { readonly line: number; readonly column: number } | undefined;
}

export interface Answer {
  readonly kind: 'answer';
  readonly tests: readonly TestOutcome[];
  readonly hitCount: number;
  /** True where a test failed with the change, and fails without it now: the process isn't fit for use any more. */
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
