/** Owns carrying a campaign out in the foreground: under the lock, through the engine, in view, until it has ended. */
import { kubeadmDialect } from '../../dialects/kubeadm/dialect.ts';
import { configMaps, newPlan, PLACE } from '../../dialects/kubeadm/plan-object.ts';
import type { Assessment } from '../../dialects/kubeadm/preflight.ts';
import { procedures } from '../../dialects/kubeadm/procedure.ts';
import { campaignController } from '../../engine/controller.ts';
import type { Dialect } from '../../engine/dialect.ts';
import { askControlPlane } from '../../engine/health.ts';
import { DEFAULT_POLICY } from '../../engine/policy/campaign-policy.ts';
import type { KubeClient } from '../../kube/client.ts';
import { createElection, type Election, timesOf } from '../../kube/election.ts';
import { createEventRecorder } from '../../kube/events.ts';
import { fencedClient } from '../../kube/fence.ts';
import { askReadyz } from '../../kube/readyz.ts';
import { isNotFound } from '../../kube/status-error.ts';
import { createManager } from '../../runtime/manager.ts';
import { sleep } from '../../util/clock.ts';
import { EXIT } from '../../util/errors.ts';
import type { KubeadmApplyFlags } from '../program.ts';
import { showStatus } from '../status/command.ts';
import type { Session } from './session.ts';

const READYZ_TIMEOUT_MS = 5000;
/** Milliseconds to win a lock that nobody holds before anybody is told that it is waited for. */
const PATIENCE_MS = 2000;
const LOOK_AGAIN_MS = 50;

/** `decide` looks once more under the lock, and gives what is to be done now. Resolves with the exit code. */
export async function carryOut(
  session: Session,
  flags: KubeadmApplyFlags,
  decide: () => Promise<Assessment>,
): Promise<number> {
  const { client, clock, log, identity } = session;
  const stop = new AbortController();
  const signal = AbortSignal.any([session.signal, stop.signal]);
  const election = createElection({
    client,
    ...PLACE,
    identity,
    ...timesOf(flags.leaseDuration),
    clock,
    logger: log,
  });
  const elected = election.run(signal);
  try {
    await locked(election, session);
    const { request, resumes } = await decide();
    const writer = fencedClient(client, election);
    if (!resumes) {
      if (request.leader.length + request.followers.length + request.workers.length === 0) {
        session.output.write('Another run has done it: nothing is left.\n');
        return EXIT.ok;
      }
      await replacePlan(writer, newPlan(request));
    }
    return await runCampaign(session, flags, writer, signal);
  } finally {
    stop.abort(new Error('done'));
    await elected;
  }
}

async function locked(election: Election, { clock, output, signal }: Session): Promise<void> {
  const since = clock.monotonic();
  let isTold = false;
  while (!election.held()) {
    if (!isTold && clock.monotonic() - since > PATIENCE_MS && election.leader() !== '') {
      output.write(`Waiting for the lock ${PLACE.namespace}/${PLACE.name}: ${election.leader()} holds it.\n`);
      isTold = true;
    }
    await sleep(clock, LOOK_AGAIN_MS, signal);
  }
}

/** What an ended campaign left makes way: a new one has a uid of its own, by which hosts tell them apart. */
async function replacePlan(writer: KubeClient, plan: ReturnType<typeof newPlan>): Promise<void> {
  const { namespace, name } = PLACE;
  await writer.delete(configMaps, name, { namespace }).catch((error: unknown) => {
    if (!isNotFound(error)) throw error;
  });
  await writer.create(configMaps, plan, { namespace });
}

async function runCampaign(
  session: Session,
  flags: KubeadmApplyFlags,
  writer: KubeClient,
  signal: AbortSignal,
): Promise<number> {
  const { client, config, clock, log, output, manifest, shells } = session;
  const done = new AbortController();
  const working = AbortSignal.any([signal, done.signal]);
  const works = procedures({ manifest, shells, writer, clock, log, signal: working });
  const dialect = kubeadmDialect(works) as unknown as Dialect;
  const events = createEventRecorder({ client, component: 'refit-kubeadm', clock, logger: log });
  const manager = createManager({ clock, logger: log });
  manager.addController(
    campaignController(dialect, {
      reader: client,
      writer,
      policyFor: () => DEFAULT_POLICY,
      clock,
      log,
      inquirer: {
        askControlPlane: async (endpoints) =>
          await askControlPlane(
            endpoints,
            async (host) => await askReadyz(config, host, { port: flags.apiPort, timeoutMs: READYZ_TIMEOUT_MS }),
          ),
      },
      announce: (plan, { type, reason }) => events.record(plan, { type, reason: reason.code, message: reason.message }),
    }),
  );
  const managed = manager.run(working);
  const view = {
    ...(flags.apiPort === undefined ? {} : { apiPort: flags.apiPort }),
    output: 'text',
    watch: true,
  } as const;
  const kubeconfig = flags.kubeconfig ?? manifest.kubeconfig;
  const parts = { dialects: [dialect], clock, output, signal: working };
  try {
    const shown = showStatus(
      { ...view, ...(kubeconfig ? { kubeconfig } : {}), ...(flags.context ? { context: flags.context } : {}) },
      parts,
    );
    // Whichever ends first: a manager only ends by itself where it failed.
    return await Promise.race([shown, managed.then(async () => await shown)]);
  } finally {
    done.abort(new Error('done'));
    await managed.catch(() => undefined);
  }
}
