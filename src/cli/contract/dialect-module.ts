/**
 * The contract between the commands and a dialect. Each dialect has one module, `src/dialects/<product>/module.ts`, and
 * `src/dialects/modules.ts` lists the modules. Only `src/cmd/` imports this list, and hands the modules to the commands,
 * so the commands name no dialect.
 */
import type { DialectName } from '../../api/refit/upgrade-policy.ts';
import type { PolicyEffects } from '../../engine/policy/policy-effects.ts';
import type { DialectReadiness } from '../../ready/context.ts';
import type { DialectCommands } from './dialect-commands.ts';
import type { FileKind } from './file-kind.ts';
import type { InstallComponent } from './install-component.ts';
import type { ReadyTargetWay } from './ready-target.ts';
import type { ObjectRollBack, ReversibleDialect } from './roll-back.ts';
import type { SelfDrain } from './self-drain.ts';
import type { UpgradeWay } from './upgrade-way.ts';

/**
 * One dialect, as the commands see it. A module is light: it loads the code in `plan/` and in `command/` only when this
 * code is needed. No member is optional, so that a dialect that leaves one out does not compile.
 */
export interface DialectModule<Name extends string = DialectName> extends ReversibleDialect {
  readonly name: Name;
  /** Loads what `refit validate` accepts. */
  files(): Promise<readonly FileKind[]>;
  /** Loads the commands that only this dialect has. `all` are all dialects, for a command that shows the plans of all. */
  commands(all: readonly ReversibleDialect[]): Promise<DialectCommands>;
  /** The component that `refit install` puts into the cluster. Undefined if nothing runs there. */
  readonly install: InstallComponent | undefined;
  /** How `refit upgrade` gives clusters of the dialect another version. */
  readonly upgrade: UpgradeWay;
  /** Set if `refit rollback` also takes the objects back for which plans of the dialect are made. */
  readonly objectRollBack: ObjectRollBack | undefined;
  /** Which fields of an UpgradePolicy have an effect on the plans of the dialect. */
  readonly policyEffects: PolicyEffects;
  /** Loads what only this dialect knows about a cluster before an upgrade. */
  readiness(): Promise<DialectReadiness>;
  /** Set if a flag of `refit ready` names the cluster in a way that only this dialect understands. */
  readonly readyTarget: ReadyTargetWay | undefined;
  /** Set if something other than the leader may drain nodes. */
  readonly selfDrain: SelfDrain | undefined;
}
