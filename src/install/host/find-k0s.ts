/** Finds the k0s that runs on this host. */
import { type FoundService, findServices } from '../../agent/service/find-services.ts';
import { askService, type TrustedAnswer } from '../../agent/service/trusted-service.ts';
import { RefitError } from '../../util/errors.ts';

const ASK_MS = 5_000;

export interface RunningK0s extends FoundService {
  readonly role: 'controller' | 'worker';
  readonly version: string;
  readonly runsPods: boolean;
  /** On a controller: k0s was started with its own agent on. */
  readonly ownAgent: boolean;
}

/** The one whose status socket answers. Throws REFIT_INSTALL when there is none, or more than one. */
export async function findK0s(): Promise<RunningK0s> {
  const found: RunningK0s[] = [];
  for (const service of findServices()) {
    const answer = await askService(service.statusSocket, ASK_MS).catch(() => undefined);
    if (answer?.pid === service.pid) found.push({ ...service, ...describe(answer) });
  }
  const [only, ...more] = found;
  if (only === undefined)
    throw new RefitError('REFIT_INSTALL', 'no k0s runs on this host: start it, and install the agent again');
  if (more.length === 0) return only;
  const pids = found.map(({ pid }) => pid).join(', ');
  throw new RefitError('REFIT_INSTALL', `several k0s run on this host (PIDs ${pids}): run \`refit agent\` by hand`);
}

function describe({ version, role, workloads, ownAgent }: TrustedAnswer) {
  // Only a controller can leave its own agent on or off.
  const isController = ownAgent !== undefined || (role ?? '').startsWith('controller');
  return {
    version,
    role: isController ? 'controller' : 'worker',
    runsPods: !isController || workloads === true,
    ownAgent: ownAgent === true,
  } as const;
}
