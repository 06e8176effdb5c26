/** What every drawer has: it takes the focus, gives it back when it closes, and closes with the Escape key. */
import type { RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';

/** On a screen that is not wider than this, the drawer covers the page. The style sheet has the same width. */
const NARROW = '(max-width: 64rem)';

/**
 * Moves the focus into the drawer, and back to the element that opened it when the drawer closes. While the drawer
 * covers the page, the keyboard and screen readers cannot reach the page behind it. `otherwise` selects the element that
 * gets the focus after a drawer that a link has opened.
 */
export function useFocusInside(box: RefObject<HTMLElement | null>, otherwise: string): void {
  useLayoutEffect(() => {
    const drawer = box.current;
    const before = document.activeElement;
    const narrow = matchMedia(NARROW);
    const behind = [...document.querySelectorAll<HTMLElement>('header, main')];
    const cover = (isCovered: boolean): void => {
      for (const element of behind) element.inert = isCovered;
    };
    const onWidth = (): void => cover(narrow.matches);
    narrow.addEventListener('change', onWidth);
    drawer?.focus();
    onWidth();
    return () => {
      // The focus is on the body if the browser has already removed the element that had it.
      const { activeElement: focused, body } = document;
      const hadFocus = focused === body || drawer?.contains(focused) === true;
      narrow.removeEventListener('change', onWidth);
      cover(false);
      if (!hadFocus) return;
      const isOpener = before instanceof HTMLElement && before !== document.body;
      const next = isOpener && before.isConnected ? before : document.querySelector(otherwise);
      if (next instanceof HTMLElement) next.focus();
    };
  }, [box, otherwise]);
}

/** Closes the drawer with the Escape key. In a question or in a field, the key has another meaning. */
export function useEscape(close: () => void): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    const onKey = ({ key, target }: KeyboardEvent): void => {
      const isElsewhere = target instanceof Element && target.closest(OTHERS) === null;
      if (key === 'Escape' && isElsewhere) latest.current();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);
}

const OTHERS = 'dialog, input, select, textarea';
