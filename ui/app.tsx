/**
 * Shows all plans, and the chosen plan with its nodes. Every text from the cluster becomes a text node of the document,
 * never HTML.
 */
import { useEffect, useState } from 'preact/hooks';
import type { DashboardState, PagePlan, RunState } from '../src/cli/dashboard/state.ts';
import { PlanActions } from './actions.tsx';
import { Heading } from './heading.tsx';
import { Nodes } from './lanes.tsx';
import { NodePanel } from './node-panel.tsx';
import { Preview } from './preview.tsx';
import { linkNameOfRun, RunPanel } from './run-panel.tsx';
import { Sentences } from './sentences.tsx';
import { Time } from './times.tsx';
import { fragmentOf, linkNameOf, planNamed, useView, type View, type ViewState } from './view.ts';

interface AppProps {
  /** The state that a report contains; undefined on a page that a server serves. */
  readonly inside: DashboardState | undefined;
  /** True if a proxy signs the user in and out. */
  readonly isProxied: boolean;
}

export function App({ inside, isProxied }: AppProps) {
  const { state, isLost } = useServed(inside);
  const { view, go, forgetPlan } = useView();
  const [last, setLast] = useState<string>();
  const plans = state?.plans ?? [];
  const named = planNamed(view.plan, plans);
  const plan = named ?? plans.find(({ key }) => key === last) ?? plans[0];
  const shown = plan?.key;
  const isUnknown = view.plan !== undefined && named === undefined;
  // The page continues to show the same plan even if another plan becomes the first, or if the plan of the link appears
  // later. Otherwise the plan of a button could change under the mouse pointer.
  useEffect(() => {
    if (view.plan === undefined) setLast(shown);
    if (isUnknown && shown !== undefined) forgetPlan();
  }, [view.plan, shown, isUnknown]);
  if (state === undefined)
    return (
      <main>
        <h1>Refit</h1>
        <p role="status">Loading…</p>
      </main>
    );
  // A report has no server that could carry out actions.
  const allowsActions = inside === undefined && state.allowsActions === true;
  const node = isUnknown ? undefined : view.node;
  const run = isUnknown || node !== undefined || inside !== undefined ? undefined : view.run;
  const linkName = plan === undefined ? undefined : linkNameOf(plan, plans);
  return (
    <>
      <header>
        <Heading cluster={state.cluster} plan={plan} />
        {state.viewer !== undefined && <SignedIn viewer={state.viewer} isProxied={isProxied} />}
        <Notes state={state} isLost={isLost} />
      </header>
      <main>
        <Overview plans={plans} chosen={shown} choose={(chosen) => go(atPlan(chosen, plans))} />
        {inside === undefined && <Preview />}
        {plan !== undefined && (
          <Plan
            key={plan.key}
            plan={plan}
            labels={state.labels ?? NO_LABELS}
            view={{ ...view, node }}
            hrefOf={
              inside === undefined
                ? (name) => fragmentOf({ ...view, plan: linkName, node: undefined, run: name })
                : undefined
            }
            go={go}
            allowsActions={allowsActions}
            open={(name) => go({ plan: linkName, node: name, run: undefined })}
          />
        )}
      </main>
      {plan !== undefined && node !== undefined && (
        <NodePanel
          key={`${plan.key} ${node}`}
          plan={plan}
          name={node}
          labels={state.labels ?? NO_LABELS}
          isServed={inside === undefined}
          allowsActions={allowsActions}
          close={() => go({ node: undefined })}
        />
      )}
      {plan !== undefined && run !== undefined && (
        <RunPanel
          key={`${plan.key} ${run}`}
          plan={plan}
          name={run}
          close={() => go({ run: undefined })}
        />
      )}
    </>
  );
}

/** Returns the view of a plan that the viewer has chosen. What the viewer looked for in another plan does not count there. */
function atPlan(plan: PagePlan, plans: readonly PagePlan[]): Partial<View> {
  return {
    plan: linkNameOf(plan, plans),
    node: undefined,
    run: undefined,
    filters: [],
    search: '',
  };
}

/** Follows the state that the server sends. `isLost` is true while the server does not answer. */
function useServed(inside: DashboardState | undefined) {
  const [state, setState] = useState(inside);
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    if (inside !== undefined) return undefined;
    return follow(
      (next) => {
        setLost(false);
        setState(next);
      },
      () => setLost(true),
    );
  }, [inside]);
  return { state, isLost };
}

const AGAIN_MS = 5000;

/**
 * Follows the events of the server until the returned function is called. It reconnects itself, because a browser does
 * not reconnect after an error response.
 */
function follow(onState: (state: DashboardState) => void, onLost: () => void): () => void {
  let events: EventSource;
  let again: number | undefined;
  const begin = (): void => {
    events = new EventSource('api/events');
    events.onmessage = ({ data }) => onState(JSON.parse(String(data)) as DashboardState);
    // The page loads again, because the server must check the token of the user again.
    events.addEventListener('end', () => location.reload());
    events.onerror = () => {
      onLost();
      if (events.readyState === EventSource.CLOSED) again = setTimeout(retry, AGAIN_MS);
    };
  };
  const retry = (): void => {
    fetch('api/state').then(
      ({ status }) => (status === 401 ? location.reload() : begin()),
      () => begin(),
    );
  };
  begin();
  return () => {
    clearTimeout(again);
    events.close();
  };
}

interface SignedInProps extends Pick<AppProps, 'isProxied'> {
  readonly viewer: string;
}

/** The user who is signed in. Only a page that the controller serves has a signed-in user. */
function SignedIn({ viewer, isProxied }: SignedInProps) {
  const signOut = (): void => {
    void fetch('sign-out', { method: 'POST' }).finally(() => location.reload());
  };
  return (
    <div class="viewer">
      <span>Signed in as {viewer}</span>
      {!isProxied && (
        <button type="button" onClick={signOut}>
          Sign out
        </button>
      )}
    </div>
  );
}

function Notes({ state, isLost }: { readonly state: DashboardState; readonly isLost: boolean }) {
  const stale =
    state.silentSince === undefined
      ? []
      : [`Stale since ${state.silentSince}: the API server does not answer.`];
  const lost = isLost ? [`Stale since ${state.at}: refit dashboard does not answer.`] : [];
  const missing = state.missing.map((line) => `Not shown: ${line}`);
  return (
    <div role="status" class="notes">
      {[...lost, ...stale, ...state.notes, ...missing].map((line) => (
        <p key={line}>{line}</p>
      ))}
    </div>
  );
}

interface OverviewProps {
  readonly plans: readonly PagePlan[];
  readonly chosen: string | undefined;
  readonly choose: (plan: PagePlan) => void;
}

function Overview({ plans, chosen, choose }: OverviewProps) {
  return (
    <section aria-labelledby="plans">
      <h2 id="plans">Plans</h2>
      {plans.length === 0 && <FirstSteps />}
      <ul class="plans">
        {plans.map((plan) => (
          <li key={plan.key}>
            <button type="button" aria-pressed={plan.key === chosen} onClick={() => choose(plan)}>
              <strong>{plan.title}</strong>
              <span class={`phase ${plan.phase}`}>
                {plan.phase} {plan.done}/{plan.total}
              </span>
              <progress
                max={100}
                value={plan.percent}
                aria-label={`${plan.title}: nodes that are done`}
              />
              <span>
                {[...plan.progress, ...(plan.wave === undefined ? [] : [plan.wave])].join(', ')}
              </span>
              <span>{plan.chief}</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** The list is the same for each state, so that the page prepares its search only once. */
const NO_LABELS: readonly string[] = [];

/** Says what to do in a cluster without a plan. */
function FirstSteps() {
  return (
    <>
      <p>There is no plan. The first three steps:</p>
      <ol>
        <li>
          Find out whether the cluster can take the version: <code>refit ready --to VERSION</code>
        </li>
        <li>
          See what a plan would do, here under Preview a plan, or with{' '}
          <code>refit preview -f plan.yaml</code>
        </li>
        <li>
          Apply the plan with <code>kubectl apply -f plan.yaml</code>. This page then follows it.
        </li>
      </ol>
    </>
  );
}

interface PlanProps {
  readonly plan: PagePlan;
  readonly labels: readonly string[];
  readonly view: View;
  readonly go: ViewState['go'];
  /** Returns the address of an earlier run with this name. Undefined in a report, which has no server to ask for a run. */
  readonly hrefOf: ((run: string) => string) | undefined;
  readonly allowsActions: boolean;
  readonly open: (node: string) => void;
}

function Plan({ plan, labels, view, go, hrefOf, allowsActions, open }: PlanProps) {
  return (
    <>
      <section aria-labelledby="plan">
        <h2 id="plan">{plan.title}</h2>
        <p>
          {plan.phase}
          {plan.versions === '' ? '' : `, to ${plan.versions}`}, since <Time at={plan.started} />
          {plan.ended !== undefined && (
            <>
              , ended <Time at={plan.ended} />
            </>
          )}
          {plan.expected !== undefined && (
            <>
              ; expected to end between <Time at={plan.expected.earliest} /> and{' '}
              <Time at={plan.expected.latest} />
            </>
          )}
        </p>
        {allowsActions && <PlanActions key={plan.key} plan={plan} />}
        <Sentences said={plan.why} />
      </section>
      <section aria-labelledby="nodes">
        <h2 id="nodes">Nodes</h2>
        <Nodes nodes={plan.nodes} labels={labels} view={view} go={go} open={open} />
      </section>
      {(plan.report ?? []).map(({ heading, lines }) => (
        <List key={heading} title={heading} lines={lines} />
      ))}
      <List title="Held nodes" lines={plan.held} />
      <List
        title="Health checks"
        lines={plan.checks.map(({ name, state, message }) => `${name}: ${state}. ${message}`)}
      />
      <History runs={plan.history} hrefOf={hrefOf} />
    </>
  );
}

function List({ title, lines }: { readonly title: string; readonly lines: readonly string[] }) {
  if (lines.length === 0) return null;
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul>
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
    </section>
  );
}

interface HistoryProps extends Pick<PlanProps, 'hrefOf'> {
  readonly runs: readonly RunState[];
}

function History({ runs, hrefOf }: HistoryProps) {
  if (runs.length === 0) return null;
  return (
    <section aria-label="History" class="history">
      <h2>History</h2>
      <ul>
        {runs.map((run) => {
          const { id, started, version, phase, done, total, causes } = run;
          const name = (
            <>
              <Time at={started} /> to {version}
            </>
          );
          return (
            <li key={`${started} ${id}`}>
              {hrefOf === undefined ? name : <a href={hrefOf(linkNameOfRun(run, runs))}>{name}</a>}:{' '}
              {[`${phase} ${done}/${total}`, ...causes].join('; ')}
            </li>
          );
        })}
      </ul>
    </section>
  );
}
