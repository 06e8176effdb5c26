/** The light entry to the dialects: it loads the code of a product only when this code is needed. */
import type { FindProcedure, HostProcedure } from '../agent/procedure.ts';
import type { DialectModule } from '../cli/contract/dialect-module.ts';
import { autopilotModule } from './autopilot/module.ts';
import { capiModule } from './capi/module.ts';
import { cattleModule } from './cattle/module.ts';
import { kubeadmModule } from './kubeadm/module.ts';

/** All dialects. A new dialect is one entry here, and its name in `DIALECT_NAMES`. */
export const MODULES: readonly DialectModule[] = [
  autopilotModule,
  cattleModule,
  kubeadmModule,
  capiModule,
];

/** The procedures of hosts that other products than k0s upgrade, by the value of `--procedure`. */
const PROCEDURES: Readonly<Record<HostProcedure['name'], () => Promise<FindProcedure>>> = {
  kubeadm: async () => (await import('./kubeadm/agent/kubeadm-procedure.ts')).findKubeadmProcedure,
};

/** Returns a function that loads and finds the procedure; undefined for k0s, whose steps the agent itself has. */
export function procedureNamed(name: HostProcedure['name'] | 'k0s'): FindProcedure | undefined {
  if (name === 'k0s') return undefined;
  const load = PROCEDURES[name];
  return async (...args) => await (await load())(...args);
}

/** Runs until `abort`. `environment` configures the process. */
type StandIn = (environment: NodeJS.ProcessEnv, abort: AbortSignal) => Promise<void>;

/** Loads the process that runs in place of the executable `system-upgrade-controller` of Rancher. */
export async function loadStandIn(): Promise<StandIn> {
  const { runSystemUpgradeController } = await import(
    './cattle/command/system-upgrade-controller.ts'
  );
  return runSystemUpgradeController;
}
