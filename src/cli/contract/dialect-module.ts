/**
 * The contract between the commands and a dialect. Each dialect has one module, `src/dialects/<product>/module.ts`, and
 * `src/dialects/modules.ts` lists the modules. Only `src/cmd/` imports this list, and hands the modules to the commands,
 * so the commands name no dialect.
 */
import type { DialectName } from '../../api/refit/upgrade-policy.ts';
import type { Dialect } from '../../engine/contract/dialect.ts';
import type { FileKind } from './file-kind.ts';
import type { PlanRunner } from './plan-runner.ts';
import type { PolicyEffects, SelfDrain } from './policy-effects.ts';

export interface LeaseName {
  readonly namespace: string;
  readonly name: string;
}

/** The process that carries plans out, as other programs see it. */
export interface PlanProcess {
  /**
   * The Lease whose holder carries out the plans. Undefined if no command can know its name, so that a command cannot say
   * whether the process runs.
   */
  readonly lease: LeaseName | undefined;
  /** The names of the components that write the Events about plans which `refit report` shows. */
  readonly eventComponents: readonly string[];
}

/** What a step does to a node. The picture of an ended plan draws it as a shade. */
export type StepShade = 'download' | 'drain' | 'apply' | 'restart' | 'uncordon' | 'verify';

/** What the texts about plans need of a dialect. */
export interface PlanTexts {
  readonly process: PlanProcess;
  readonly advice: PlanRunner;
  /** What the steps do that nodes report. A step that is missing here is drawn as work of an unknown kind. */
  readonly steps: ReadonlyMap<string, StepShade>;
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
  /** Loads what `refit validate` accepts. */
  files(): Promise<readonly FileKind[]>;
  readonly policyEffects: PolicyEffects;
  /** Set if something other than the leader may drain nodes. */
  readonly selfDrain: SelfDrain | undefined;
}
