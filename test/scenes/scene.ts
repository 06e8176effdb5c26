/** What a list of scenes contains. */
import type { Stage } from './stage.ts';

export interface Scene {
  /** The situation, which is also the name of the file with the recorded text. */
  readonly name: string;
  readonly play: (stage: Stage) => Promise<void>;
}
