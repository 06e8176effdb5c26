/** An invariant: its sentence, the code that upholds it, and its check. */
import type { Configuration } from './cluster.ts';
import type { Glance } from './glance.ts';

export interface StatedInvariant {
  readonly name: string;
  readonly sentence: string;
  /** Files, and what in them; as Markdown. */
  readonly upheldBy: string;
  /** Tests that watch real processes and files for it; as Markdown. */
  readonly alsoSeenBy?: string;
  /** True for what must hold once the run has come to its end, and nothing happens any more. */
  readonly atRest?: boolean;
  readonly holds: (glance: Glance, configuration: Configuration) => boolean;
}
