/** An invariant: its sentence, the code that upholds it, and its check. */
import type { Configuration } from './cluster.ts';
import type { Glance } from './glance.ts';

export interface StatedInvariant {
  readonly name: string;
  readonly sentence: string;
  /** The files with the code that ensures the invariant, and the parts of them, as Markdown. */
  readonly upheldBy: string;
  /** Tests that check the invariant with real processes and files, as Markdown. */
  readonly alsoSeenBy?: string;
  /** True if the invariant must hold only at the end of a run, when nothing happens any more. */
  readonly atRest?: boolean;
  readonly holds: (glance: Glance, configuration: Configuration) => boolean;
}
