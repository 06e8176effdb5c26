/** The roll-back of k0s Plans, also of deleted ones, for `refit rollback`. */
import type { RollBackCommand } from '../../../cli/contract/roll-back.ts';
import { rollBackK0sPlan } from './roll-back-command.ts';
import { deletedK0sPlan, rollBackDeletedK0sPlan } from './roll-back-deleted-plan.ts';

export const rollBackOfK0s: RollBackCommand = {
  plan: rollBackK0sPlan,
  deleted(session, named) {
    const deleted = deletedK0sPlan(session, named);
    if (deleted === undefined) return undefined;
    return async (flags, parts) => await rollBackDeletedK0sPlan(session, deleted, flags, parts);
  },
};
