/** Shows one earlier run of a plan in a drawer: its nodes with their versions, how it ended, and why. */
import { useEffect, useRef, useState } from 'preact/hooks';
import type { NodeOfRun, PagePlan, RunShown, RunState } from '../src/cli/dashboard/state.ts';
import { useEscape, useFocusInside } from './drawer.ts';
import { Sentences } from './sentences.tsx';
import { Time } from './times.tsx';

interface RunPanelProps {
  readonly plan: PagePlan;
  /** The name of the run in the link. The run may not exist. */
  readonly name: string;
  readonly close: () => void;
}

export function RunPanel({ plan, name, close }: RunPanelProps) {
  const box = useRef<HTMLElement>(null);
  const shown = useRun(plan, name);
  useFocusInside(box, '.history a');
  useEscape(close);
  return (
    <aside ref={box} tabIndex={-1} aria-labelledby="run" class="drawer">
      <div class="title">
        <h2 id="run">Run {name}</h2>
        <button type="button" onClick={close}>
          Back to the present
        </button>
      </div>
      <div role="status">
        {shown === 'asked' && <p>Loading…</p>}
        {shown === 'unknown' && (
          <p>The plan has no such run in its history, which has the last ten runs.</p>
        )}
        {shown === 'unanswered' && <p>The server does not answer.</p>}
      </div>
      {typeof shown === 'object' && <Run run={shown} />}
    </aside>
  );
}

function Run({ run }: { readonly run: RunShown }) {
  return (
    <>
      <p>
        From <Time at={run.started} /> to {run.ended === undefined ? '?' : <Time at={run.ended} />}
        {run.version === '' ? '' : `, to ${run.version}`}
      </p>
      <Sentences said={run.said} />
      {run.nodes.length > 0 && (
        <div class="table" tabIndex={0} role="group" aria-label="Nodes of the run">
          <table>
            <thead>
              <tr>
                <th scope="col">Node</th>
                <th scope="col">Before</th>
                <th scope="col">After</th>
              </tr>
            </thead>
            <tbody>
              {run.nodes.map((node) => (
                <tr key={node.name}>
                  <th scope="row">{node.name}</th>
                  <td>{node.from ?? 'not known'}</td>
                  <td>{endOf(node)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </>
  );
}

function endOf({ to, failure }: NodeOfRun): string {
  if (failure === undefined) return to ?? 'not recorded';
  return failure === '' ? 'failed' : `failed: ${failure}`;
}

/** Asks the server for the run, again if the history of the plan becomes longer. */
function useRun(plan: PagePlan, name: string) {
  const [shown, setShown] = useState<RunShown | 'asked' | 'unknown' | 'unanswered'>('asked');
  const { key, history } = plan;
  const newest = history[0]?.started;
  useEffect(() => {
    let isLatest = true;
    const query = new URLSearchParams({ plan: key, run: name });
    void fetch(`api/run?${query}`)
      .then(async (answer) => ((await answer.json()) as RunShown | null) ?? 'unknown')
      .catch(() => 'unanswered' as const)
      .then((found) => isLatest && setShown(found));
    return () => {
      isLatest = false;
    };
  }, [key, name, newest]);
  return shown;
}

/** Returns the text by which a link names the run: its id, with its start if another run of the plan has the same id. */
export function linkNameOfRun({ id, started }: RunState, runs: readonly RunState[]): string {
  return runs.filter((run) => run.id === id).length === 1 ? id : `${id}@${started}`;
}
