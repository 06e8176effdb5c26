/** An agent's own node as a value that outlives the agent: cordoned or not, and how often it was drained. */
import type { Cordoner, Maintenance } from '../../src/agent/maintenance/node-maintenance.ts';
import type { Node } from '../../src/kube/resources.ts';
import type { Fuse } from './fuse.ts';

export class OwnNode {
  isCordoned = false;
  drains = 0;
  /** How often it was asked who cordons. */
  asked = 0;
  /** How often a cordon could not be removed. */
  refusals = 0;
  cordoner: Cordoner = 'self';
  /** What the API server has of it. */
  read: () => Node | undefined = () => undefined;
  /** True where the service was restarted, though pods could still come. */
  wasTouchedUncordoned = false;
  /** What else happens while the node is drained. */
  onDrain: (abort: AbortSignal) => Promise<void> = async () => await Promise.resolve();
  /** Why a cordon cannot be removed, as long as it is set. */
  holdsFast: string | undefined;

  /** Each change of the node is an effect of its own. */
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
