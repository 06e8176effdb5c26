/**
 * The node of an agent, as a value that remains when the agent ends: whether it is cordoned, and how often it was
 * drained.
 */
import type { Cordoner, Maintenance } from '../../src/agent/maintenance/node-maintenance.ts';
import type { Node } from '../../src/kube/resources.ts';
import type { Fuse } from './fuse.ts';

export class OwnNode {
  isCordoned = false;
  drains = 0;
  /** The number of calls of `whoCordons`. */
  asked = 0;
  /** The number of times that a cordon could not be removed. */
  refusals = 0;
  cordoner: Cordoner = 'self';
  /** Returns the Node that the API server has. */
  read: () => Node | undefined = () => undefined;
  /** True if the service was restarted while new pods could still be scheduled. */
  wasTouchedUncordoned = false;
  /** Called while the node is drained. */
  onDrain: (abort: AbortSignal) => Promise<void> = async () => await Promise.resolve();
  /** The error with which the removal of a cordon fails. Undefined if the removal works. */
  holdsFast: string | undefined;

  /** Returns a maintenance in which each change of the node is a separate effect of the fuse. */
  maintenanceUntil(fuse: Fuse): Maintenance {
    return {
      whoCordons: async () => {
        this.asked++;
        return await Promise.resolve(this.cordoner);
      },
      readNode: async () => await Promise.resolve(this.read()),
      hasCordon: async () => await Promise.resolve(this.isCordoned),
      cordonAndDrain: async (_owner, _asked, abort) => {
        await fuse.before(async () => {
          this.isCordoned = true;
          await Promise.resolve();
        });
        await fuse.before(async () => {
          this.drains++;
          await this.onDrain(abort);
        });
      },
      uncordon: async () =>
        await fuse.before(async () => {
          if (this.holdsFast !== undefined) {
            this.refusals++;
            throw new Error(this.holdsFast);
          }
          this.isCordoned = false;
          await Promise.resolve();
        }),
    };
  }
}
