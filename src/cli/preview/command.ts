/** Owns `refit preview`: what a plan would do on this cluster, by the very decision of the controller; writes nothing. */
import { planKind } from '../../api/autopilot/plan.ts';
import { cattlePlanKind } from '../../api/cattle/plan.ts';
import { readObject } from '../../api/read-object.ts';
import type { KubeObject } from '../../kube/types.ts';
import { rfc3339 } from '../../util/clock.ts';
import { EXIT, RefitError } from '../../util/errors.ts';
import type { PreviewFlags } from '../program.ts';
import { type AskControlPlane, observe } from '../status/observe.ts';
import { inSession, type LoadedDialect, type LookParts, lookOnce, type Session } from '../status/session.ts';
import { readText } from '../validate.ts';
import { renderPreview } from './text.ts';
import { type PlanPreview, previewOf } from './view.ts';

/** Dialects whose plans are written as files; their objects are the only ones that a file may hold. */
const KINDS = [planKind, cattlePlanKind] as const;

/** Resolves with 0; rejects with REFIT_FILE where the file's plan would be refused or do nothing, once it is shown. */
export async function showPreview(flags: PreviewFlags, parts: LookParts): Promise<number> {
  const { file } = flags;
  const read = file === undefined ? undefined : readObject(await readText(file), file, KINDS);
  return await inSession(flags, parts, 'refit-preview', async (session) => {
    const now = parts.clock.now();
    const plans = read ? [await previewFile(read, session, now)] : await previewOpen(session, now, parts.signal);
    const json = flags.output === 'json';
    parts.output.write(json ? `${JSON.stringify({ plans }, undefined, 2)}\n` : renderPreview({ plans }));
    const problem = file === undefined ? undefined : plans[0]?.reason;
    if (problem !== undefined) throw new RefitError('REFIT_FILE', `${file}: ${problem}`);
    return EXIT.ok;
  });
}

type Read = ReturnType<typeof readObject>;

async function previewFile({ kind: { resource }, object }: Read, session: Session, now: number): Promise<PlanPreview> {
  const seen = session.loaded.find(({ dialect }) => dialect.plans === resource);
  if (!seen) throw new RefitError('REFIT_NO_CRD', `the cluster lacks ${resource.plural}.${resource.group}`);
  return await previewNew(object, seen, session.ask, now);
}

/** As if it were created at `now`, with nothing recorded: whatever the file holds beside its spec is another run's. */
export async function previewNew(
  object: KubeObject,
  seen: LoadedDialect,
  ask: AskControlPlane,
  now: number,
): Promise<PlanPreview> {
  const { status: _recorded, ...plan } = object as KubeObject & { status?: unknown };
  const metadata = { ...plan.metadata, uid: '', creationTimestamp: rfc3339(now) };
  const { name, namespace } = metadata;
  const isNamesake = ({ metadata: it }: KubeObject): boolean =>
    it.name === name && (namespace === undefined || it.namespace === namespace);
  const lookAt = async (...plans: KubeObject[]) =>
    await observe(seen.dialect, { plans: () => plans, world: seen.world }, ask, now);
  const [[view], [present]] = await Promise.all([
    lookAt({ ...plan, metadata }),
    lookAt(...seen.plans().filter(isNamesake).slice(0, 1)),
  ]);
  if (!view) throw new Error(`the plan ${name} was not looked at`);
  return previewOf(view, present);
}

async function previewOpen(session: Session, now: number, signal: AbortSignal): Promise<PlanPreview[]> {
  const { plans } = await lookOnce(session, now, signal);
  return plans.filter(({ phase }) => phase === 'new' || phase === 'running').map((plan) => previewOf(plan));
}
