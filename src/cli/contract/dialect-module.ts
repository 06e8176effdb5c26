/**
 * The contract between the commands and a dialect. Each dialect has one module, `src/dialects/<product>/module.ts`, and
 * `src/dialects/modules.ts` lists the modules. Only `src/cmd/` imports this list, and hands the modules to the commands,
 * so the commands name no dialect.
 */
import type { DialectName } from '../../api/refit/upgrade-policy.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import type { PlanRunner } from './plan-runner.ts';

/** What the texts about plans need of a dialect. */
export interface PlanTexts {
  readonly advice: PlanRunner;
}

/** What a session that reads plans needs of a dialect. */
export interface SessionDialect extends PlanTexts {
  /** The name of the dialect that `view` resolves with. */
  readonly name: string;
  /** Loads the dialect in the form that only reads. */
  view(): Promise<Dialect>;
}

/**
 * One dialect, as the commands see it. A module is light: it loads the code in `plan/` and in `command/` only when this
 * code is needed. No member is optional, so that a dialect that leaves one out does not compile.
 */
export interface DialectModule extends SessionDialect {
  readonly name: DialectName;
}
