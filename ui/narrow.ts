/** Says how the lanes differ on a narrow screen, where reasons wrap, and on paper, which has all lanes. */
import { useEffect, useState } from 'preact/hooks';
import type { NodeState } from '../src/cli/dashboard/state.ts';
import { LANE } from './groups.ts';

/** The style sheet has the same width. */
const PHONE = '(max-width: 40rem)';
/** The height of a line of a reason in pixels. The style sheet has the same height. */
const LINE = 20;
/** The maximum number of lines of a reason. The drawer of the node has the whole reason. */
const MOST_LINES = 4;
/** The width that one character needs at most on average, and the width beside the text, in pixels. */
const CHARACTER = 8.5;
const BESIDE = 90;

/** Returns the width of the page in pixels if the screen is narrow; undefined otherwise. */
export function useNarrowWidth(): number | undefined {
  const [width, setWidth] = useState(narrowWidth);
  useEffect(() => {
    const onResize = (): void => setWidth(narrowWidth());
    addEventListener('resize', onResize);
    return () => removeEventListener('resize', onResize);
  }, []);
  return width;
}

function narrowWidth(): number | undefined {
  return matchMedia(PHONE).matches ? innerWidth : undefined;
}

/** Returns true while the browser prints the page. */
export function useIsPrinted(): boolean {
  const [isPrinted, setPrinted] = useState(false);
  useEffect(() => {
    const print = matchMedia('print');
    const onChange = (): void => setPrinted(print.matches);
    print.addEventListener('change', onChange);
    return () => print.removeEventListener('change', onChange);
  }, []);
  return isPrinted;
}

/** Returns the height of the lane in pixels. `width` is the width of a narrow page; undefined for any other page. */
export function heightOfLane(node: NodeState | undefined, width: number | undefined): number {
  if (width === undefined || node === undefined || node.message === '') return LANE;
  const perLine = Math.max(10, Math.floor((width - BESIDE) / CHARACTER));
  return LANE + LINE * Math.min(MOST_LINES, Math.ceil(node.message.length / perLine));
}
