/** The contract of `refit rollback` for the plans of one dialect. */
import type { ReasonedFlags, RollBackFlags } from '../controls/roll-back.ts';
import type { Inspection } from '../status/observe.ts';
import type { Session, SessionParts } from '../status/status-session.ts';
import type { SessionDialect } from './session-dialect.ts';

export interface RollBackCommand {
  /** Rolls back the plan that the user has chosen. */
  plan(
    session: Session,
    plan: Inspection,
    flags: ReasonedFlags,
    parts: SessionParts,
  ): Promise<void>;
  /**
   * Returns a function that rolls back a deleted plan. Returns undefined if the user does not mean a deleted plan. `named`
   * is the name that the user gave.
   */
  deleted(session: Session, named: string | undefined): RollBackDeleted | undefined;
}

export type RollBackDeleted = (flags: ReasonedFlags, parts: SessionParts) => Promise<void>;

/**
 * Who takes the nodes of a plan back. If people do it without `refit rollback`, `instead` is a clause that says how.
 * `takesImage` is true if the user may name an image that installs the older version.
 */
export type RollBackWay =
  | { readonly kind: 'command'; readonly takesImage: boolean; load(): Promise<RollBackCommand> }
  | { readonly kind: 'byHand'; readonly instead: string };

/** What a session needs of a dialect if it may also take plans back. */
export interface ReversibleDialect extends SessionDialect {
  readonly rollBack: RollBackWay;
}

export interface ReversibleParts extends SessionParts {
  readonly modules: readonly ReversibleDialect[];
}

/** `refit rollback` for objects that are no plans, such as `machine/NAME`. */
export interface ObjectRollBack {
  /** Returns true if the text names such an object, and no plan. */
  isMeant(named: string): boolean;
  load(): Promise<RollBackObject>;
}

type RollBackObject = (
  named: string,
  flags: RollBackFlags & { readonly namespace?: string | undefined },
  parts: SessionParts,
) => Promise<void>;
