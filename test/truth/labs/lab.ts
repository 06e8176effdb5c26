/** What sequences need of a dialect: a small cluster whose hosts tell the truth, and what people do to it. */
import type { ErrorCode } from '../../../src/util/errors.ts';
import type { Stage } from '../../scenes/stage.ts';
import type { GroundTruth } from '../ground-truth.ts';

/** The error code with which a command begins its answer if it does not know an option or an argument. */
const WRONG_USAGE: ErrorCode = 'REFIT_USAGE';

/** The world of one sequence. */
export interface Scenery {
  readonly stage: Stage;
  readonly truth: GroundTruth;
  /** Random numbers in [0, 1) that depend on the seed alone. */
  readonly random: () => number;
}

/** Something that people, hosts or other tools do. */
export interface Operation {
  readonly name: string;
  /** Does it. If the state of the world does not allow it, the operation does nothing. */
  readonly act: (scenery: Scenery) => Promise<void>;
}

/** A dialect with a small cluster. */
export interface Lab {
  readonly dialect: string;
  /** The seeds that `npm test` plays. Together they find every planted untruth. */
  readonly seeds: readonly number[];
  /** True if each node has a plan of its own. */
  readonly hasSeveralPlans?: true | undefined;
  /** True if a plan of the dialect says which run it rolls back, and the lab rolls plans back. */
  readonly hasRollBacks?: true;
  /** Creates the cluster and starts everything that runs in it, with a plan that has just been applied. */
  readonly open: (scenery: Scenery) => Promise<void>;
  readonly operations: readonly Operation[];
  /** Operations that sequences do not choose, because the seeds would mean other sequences then. */
  readonly furtherOperations?: readonly Operation[];
  /** Records what a leader has admitted, and which version each host runs. Called once in each second. */
  readonly witness: (scenery: Scenery) => Promise<void>;
  /** What the words in capitals of a command mean in this lab. */
  readonly meanings?: Readonly<Record<string, string>>;
  /** The options of `refit rollback` with what only a person knows. */
  readonly rollBackFlags?: readonly string[];
  /** The operations that do what these commands do. Every other command of `refit` runs as it is shipped. */
  readonly byHand?: Readonly<Record<string, string>>;
  /** Changes annotations of the plan, as kubectl does. */
  readonly annotate?: (
    scenery: Scenery,
    annotations: Readonly<Record<string, string | null>>,
  ) => Promise<void>;
  /** The version to which the plan takes a host, as the host itself spells it. */
  readonly spelled: (version: string) => string;
}

/**
 * An operation that is one command of a person. A refusal of the command is an answer, too. A command that does not
 * exist in this form is a mistake of the lab: its sequences would never visit what the operation is for.
 */
export function command(name: string, ...args: readonly string[]): Operation {
  return {
    name,
    act: async ({ stage }) => {
      const answer = await stage.answer(...args);
      if (answer.startsWith(WRONG_USAGE)) throw new Error(`refit ${args.join(' ')}: ${answer}`);
    },
  };
}
