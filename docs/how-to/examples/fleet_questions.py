"""The five questions in Polars: each takes the rows of a data set, and answers as the SQL does."""

import polars as pl

KEY = ["host", "name", "bytes"]
KIND = ["class", "name", "bytes"]
SECONDS = pl.col("seconds").cast(pl.Float64)


def slow_beside_class(nights: pl.DataFrame) -> pl.DataFrame:
    last = nights["day"].str.to_date().max()
    recent = nights.filter(
        pl.col("followed") & (pl.col("day").str.to_date() > last - pl.duration(days=30))
    )
    own = recent.group_by([*KIND, "host"]).agg(SECONDS.median())
    usual = own.group_by(KIND).agg(usual=pl.col("seconds").median())
    ratio = own.join(usual, on=KIND).with_columns(ratio=pl.col("usual") / pl.col("seconds"))
    slow = ratio.filter(pl.col("ratio") < 0.97).sort("ratio", "host", "name")
    return slow.select("host", "name", "bytes", "ratio")


def since_when(nights: pl.DataFrame) -> pl.DataFrame:
    night = nights.filter("followed").group_by([*KEY, "day"]).agg(SECONDS.median())
    best = night.group_by(KEY).agg(best=pl.col("seconds").quantile(0.25, "linear"))
    good = night.join(best, on=KEY).filter(pl.col("seconds") <= 1.03 * pl.col("best"))
    last = good.group_by(KEY).agg(last_good=pl.col("day").max())
    slow = night.join(last, on=KEY).filter(pl.col("day") > pl.col("last_good"))
    found = slow.group_by(KEY).agg(since=pl.col("day").min(), nights=pl.len())
    return found.filter(pl.col("nights") >= 3).sort("since", "host", "name")


def by_rack(nights: pl.DataFrame, labels: pl.DataFrame) -> pl.DataFrame:
    followed = nights.filter("followed")
    own = followed.join(labels, on="host").group_by([*KIND, "rack"]).agg(SECONDS.median())
    usual = followed.group_by(KIND).agg(usual=SECONDS.median())
    ratio = own.join(usual, on=KIND).with_columns(ratio=pl.col("usual") / pl.col("seconds"))
    return ratio.select("rack", "name", "bytes", "ratio").sort("ratio", "rack", "name")


def by_driver(nights: pl.DataFrame) -> pl.DataFrame:
    return (
        nights.filter("followed")
        .group_by([*KIND, "driver"])
        .agg(
            hosts=pl.col("host").n_unique(),
            gb_per_second=(pl.col("bytes") / SECONDS / 1e9).median(),
        )
        .sort([*KIND, "driver"])
    )


def not_measured(nights: pl.DataFrame) -> pl.DataFrame:
    last = nights.group_by("host").agg(pl.col("measured").max())
    columns = ["host", "path", "bytes", "what", "why"]
    missing = nights.join(last, on=["host", "measured"]).filter(
        (pl.col("processes") == 0) & (pl.col("failure") != "")
    )
    missing = missing.select("host", "path", "bytes", what="failure", why="reason")
    few = nights.filter("followed").group_by("host", "path", "bytes").agg(pl.col("day").n_unique())
    few = few.filter(pl.col("day") < 6).with_columns(
        what=pl.lit("too few nights"), why=pl.col("day").cast(pl.String)
    )
    return pl.concat([missing, few.select(columns)]).sort("host", "path", "bytes", "what")
