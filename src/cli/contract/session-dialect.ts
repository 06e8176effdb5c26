/** The contract between a session that reads plans and a dialect. It is the part of a module that every command needs. */
import type { Dialect } from '../../engine/contract/dialect.ts';
import type { ObjectCommands } from './object-commands.ts';
import type { PlanRunner } from './plan-runner.ts';

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
export type StepShade =
  | 'download'
  | 'drain'
  | 'apply'
  | 'restart'
  | 'rollBack'
  | 'uncordon'
  | 'verify';

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
  /** Loads the commands for the objects for which plans of the dialect are made. Undefined if users work with the plans only. */
  readonly objects: (() => Promise<ObjectCommands>) | undefined;
}
