/**
 * Defines a mutation. A mutation is one check that runs against the real part, and against the same part without its
 * guard.
 */

/** What a check finds wrong; undefined if everything is right. */
export type Complaint = string | undefined;

export interface Mutation {
  /** Number of the weakness of the original in `docs/internals/parity-autopilot.md`. */
  readonly weakness: number;
  /** Describes the check that is missing in the mutated part. */
  readonly without: string;
  /** The result of the check for the mutated part. */
  readonly complaint: string;
  readonly checkReal: () => Promise<Complaint>;
  readonly checkMutated: () => Promise<Complaint>;
}

export function mutation<T>(
  about: Pick<Mutation, 'weakness' | 'without' | 'complaint'>,
  check: (part: T) => Complaint | Promise<Complaint>,
  parts: { readonly real: T; readonly mutated: T },
): Mutation {
  return {
    ...about,
    checkReal: async () => await check(parts.real),
    checkMutated: async () => await check(parts.mutated),
  };
}
